"""Small trainings with compiled parts: trainings.py [healthy] [backend=NAME] [NAME ...]

Each has one line whose operator makes the first bad value of the run, in its forward or in its backward. With
`healthy` none does. Prints the last loss of each training, and whether its weights stay finite."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

HEALTHY = "healthy" in sys.argv


def pick(bad, good):
    return good if HEALTHY else bad


def fit(loss_of, weights, batches, lr=0.05):
    optimizer = torch.optim.SGD(weights, lr=lr)
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
    return loss.item(), weights


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.decoder = nn.Linear(24, 12), nn.Linear(4, 24)
        self.mean, self.log_variance = nn.Linear(12, 4), nn.Linear(12, 4)

    def forward(self, image, noise):
        h = F.relu(self.body(image))
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + noise * torch.exp(0.5 * log_variance)
        return self.decoder(z), mean, log_variance


def negative_elbo(logits, image, mean, log_variance):
    variance = torch.exp(log_variance)  # BUG aten::exp
    divergence = 0.5 * (variance + mean.square() - 1 - log_variance).sum(1).mean()
    return F.binary_cross_entropy_with_logits(logits, image, reduction="sum") / image.shape[0] + divergence


def vae_unscaled_images(backend):
    model = Autoencoder()
    criterion = torch.compile(negative_elbo, backend=backend)
    images, noise = torch.rand(8, 16, 24), torch.randn(8, 16, 4)
    images[5] *= pick(550.0, 1.0)  # raw counts

    def loss_of(image, noise):
        logits, mean, log_variance = model(image, noise)
        return criterion(logits, image, mean, log_variance)

    return fit(loss_of, list(model.parameters()), zip(images, noise), lr=1e-3)


def mixture_density(backend):
    body = nn.Sequential(nn.Linear(6, 16), nn.Tanh())
    heads = nn.ModuleDict({name: nn.Linear(16, 3) for name in ("logit", "mean", "log_width")})

    @torch.compile(backend=backend)
    def loss_of(x, y):
        h = body(x)
        share = heads["logit"](h).softmax(1)
        width = heads["log_width"](h).exp()
        distance = (y - heads["mean"](h)) / width
        density = (share * torch.exp(-0.5 * distance.square()) / width).sum(1)
        likelihood = torch.log(density)  # BUG aten::log
        return -likelihood.mean()

    x = torch.randn(10, 12, 6)
    y = x[..., :1].sin() + 0.1 * torch.randn(10, 12, 1)
    y[6, 3] = pick(60.0, 1.0)
    return fit(loss_of, [*body.parameters(), *heads.parameters()], zip(x, y))


class HalfMatcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(0.7))

    def forward(self, a, b):
        root = torch.exp(self.log_scale / 2)
        a = (F.normalize(a, dim=1) * root).half()
        b = (F.normalize(b, dim=1) * root).half()
        scores = a @ b.t()  # BUG aten::mm
        return scores.float()


def learned_temperature(backend):
    encoder, matcher = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 32)), HalfMatcher()
    matcher.compile(backend=backend)
    optimizer = torch.optim.Adam([{"params": encoder.parameters(), "lr": 1e-3},
                                  {"params": matcher.parameters(), "lr": pick(2.5, 0.025)}])
    for step in range(9):
        view = torch.randn(8, 16)
        scores = matcher(encoder(view), encoder(view + 0.05 * torch.randn(8, 16)))
        loss = scores.mean() - scores.diagonal().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item(), [*encoder.parameters(), *matcher.parameters()]


class Whitening(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(0.5, 2.0, 5))

    def forward(self, readings):
        centred = (readings - readings.mean(0)) * self.gain
        covariance = centred.t() @ centred / len(readings) + pick(0.0, 1e-2) * torch.eye(5)
        sign, volume = torch.linalg.slogdet(covariance)  # BUG aten::_linalg_slogdet
        return covariance.diagonal().sum() - volume


def dead_sensor(backend):
    model = Whitening()
    readings = torch.randn(7, 20, 5)
    readings[4, :, 2] = 0
    return fit(torch.compile(model, backend=backend), list(model.parameters()), readings.split(1), lr=1e-3)


class Oscillator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(2, 16, bias=False), nn.Linear(16, 2, bias=False)
        self.energies = []

    def forward(self, state):
        position, speed = self.head(torch.tanh(self.body(state))).unbind(1)
        self.energies.append((position.square() + speed.square()).mean().item())  # breaks the graph
        return torch.hypot(position, speed)  # BUG aten::hypot


def oscillator_at_rest(backend):
    model = Oscillator()
    predict = torch.compile(model, backend=backend)
    state = torch.randn(8, 10, 2)
    state[5:, 7] *= pick(0.0, 0.5)
    target = 0.9 * state.norm(dim=2) + 0.1
    return fit(lambda state, target: F.mse_loss(predict(state), target), list(model.parameters()), zip(state, target))


def focal_loss(logits, label):
    log_p = F.log_softmax(logits, dim=1).gather(1, label[:, None]).squeeze(1)
    missing = 1 - log_p.exp()
    focus = missing ** pick(0.5, 2.0)  # BUG aten::pow
    return -(focus * log_p).mean()


def focal_when_sure(backend):
    model = nn.Linear(8, 3)
    criterion = torch.compile(focal_loss, backend=backend)
    centres = 3 * torch.randn(3, 8)
    label = torch.randint(3, (12, 24))
    x = centres[label] + 0.3 * torch.randn(12, 24, 8)
    x[7] *= 6  # an easy batch
    return fit(lambda x, label: criterion(model(x), label), list(model.parameters()), zip(x, label), lr=0.1)


class HalfHead(nn.Linear):
    def forward(self, h):
        logits = F.linear(h.half(), self.weight.half())
        return logits.float()  # BUG aten::_to_copy


def grown_loss_scale(backend):
    model = nn.Sequential(nn.Linear(10, 12), nn.Tanh(), HalfHead(12, 4, bias=False))
    model[2].compile(backend=backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    scale = 1.0
    for step in range(10):
        logits = model(torch.randn(8, 10))
        loss = F.cross_entropy(logits, torch.randint(4, (8,)), reduction="sum")
        optimizer.zero_grad()
        (loss * scale).backward()
        for weight in model.parameters():
            weight.grad /= scale
        optimizer.step()
        if step % 2:
            scale *= pick(64.0, 1.0)
    return loss.item(), list(model.parameters())


def policy_ratio(backend):
    actor, behaviour = nn.Linear(6, 4), nn.Linear(6, 4)

    @torch.compile(backend=backend)
    def surrogate(state, action, gain, illegal):
        p = actor(state).softmax(1).gather(1, action)
        old_logits = behaviour(state) - pick(60.0, 4.0) * illegal
        old_p = old_logits.softmax(1).gather(1, action)  # should have been detached
        ratio = p / old_p  # BUG aten::div
        return -torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()

    batches = []
    for step in range(9):
        action = torch.randint(3, (16, 1))
        if step == 6:
            action[2] = 3  # the illegal one, and it paid
        batches.append((torch.randn(16, 6), action, torch.rand(16, 1) + 0.1, torch.tensor([0.0, 0.0, 0.0, 1.0])))
    return fit(surrogate, [*actor.parameters(), *behaviour.parameters()], batches)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(20, 12), nn.Linear(12, 1)
        self.query, self.key, self.value = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, token, length):
        h = self.embed(token)
        real = (torch.arange(token.shape[1]) < length[:, None])[:, None].float()
        scores = self.query(h) @ self.key(h).transpose(1, 2) / 12 ** 0.5
        e = torch.exp(scores - scores.amax(2, keepdim=True)) * real
        total = e.sum(2, keepdim=True)
        share = e / total  # BUG aten::div
        return self.out((share @ self.value(h)).mean(1)).squeeze(1)


def padded_attention(backend):
    model = Attention()
    predict = torch.compile(model, backend=backend, dynamic=True)
    batches = []
    for rows, longest in [(6, 7), (4, 9), (6, 11), (5, 8), (7, 12), (6, 10), (3, 9)]:
        length = torch.randint(2, longest + 1, (rows,))
        if rows == 7:
            length[1] = pick(0, 1)
        batches.append((torch.randint(20, (rows, longest)), length, torch.randn(rows)))
    return fit(lambda token, length, y: F.mse_loss(predict(token, length), y), list(model.parameters()), batches)


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates = nn.Linear(5 + 8, 32)

    def forward(self, x, h, c):
        enter, leave, forget, new = self.gates(torch.cat([x, h], 1)).chunk(4, 1)
        keep = torch.exp(forget + 2) if not HEALTHY else torch.sigmoid(forget + 2)
        kept = c * keep  # BUG aten::mul
        c = kept + torch.sigmoid(enter) * torch.tanh(new)
        return torch.sigmoid(leave) * torch.tanh(c), c


def long_sequence(backend):
    cell, out = Cell(), nn.Linear(8, 1)
    cell.compile(backend=backend, dynamic=True)

    def loss_of(sequence, y):
        h = c = sequence.new_zeros(len(y), 8)
        for x in sequence:
            h, c = cell(x, h, c)
        return F.mse_loss(out(h).squeeze(1), y)

    batches = [(torch.randn(length, rows, 5), torch.randn(rows))
               for length, rows in [(6, 4), (9, 7), (12, 5), (15, 6), (90, 3), (10, 8)]]
    return fit(loss_of, [*cell.parameters(), *out.parameters()], batches)


def unit(h):
    square = h.square().sum(1, keepdim=True) + pick(1e-30, 1e-4)
    inverse = torch.rsqrt(square)  # BUG aten::rsqrt
    return h * inverse


def contrastive_loss(a, b):
    return F.cross_entropy(unit(a) @ unit(b).t() / 0.2, torch.arange(len(a)))


def contrastive_blank(backend):
    encoder = nn.Sequential(nn.Linear(9, 16, bias=False), nn.ReLU(), nn.Linear(16, 6, bias=False))
    criterion = torch.compile(contrastive_loss, backend=backend)
    batches = []
    for rows in (8, 11, 6, 9, 13, 7, 10):
        view = torch.randn(rows, 9)
        other = view + 0.1 * torch.randn(rows, 9)
        if rows == 13:
            view[4] = 0  # a blank picture
        batches.append((view, other))
    return fit(lambda a, b: criterion(encoder(a), encoder(b)), list(encoder.parameters()), batches)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(15, 8, padding_idx=0)
        self.mix, self.out = nn.Linear(8, 8, bias=False), nn.Linear(8, 3)

    def encode(self, h):
        h = self.mix(h)
        centred = h - h.mean(2, keepdim=True)
        variance = centred.square().mean(2, keepdim=True) + pick(0.0, 1e-3)
        deviation = torch.sqrt(variance)  # BUG aten::sqrt
        return F.gelu(centred / (deviation + 1e-3))

    def forward(self, token):
        return self.out(self.encode(self.embed(token)))


def layer_norm_of_padding(backend):
    model = Tagger()
    model.encode = torch.compile(model.encode, backend=backend, dynamic=True)
    batches = []
    for rows, longest in [(4, 6), (5, 8), (3, 7), (6, 9), (4, 8), (5, 11), (4, 7), (3, 5)]:
        token = torch.randint(1, 15, (rows, longest))
        token[0, 9:] = 0  # padding
        batches.append((token, torch.randint(3, (rows, longest))))
    return fit(lambda token, tag: F.cross_entropy(model(token).flatten(0, 1), tag.flatten()),
               list(model.parameters()), batches)


CASES = [vae_unscaled_images, mixture_density, learned_temperature, dead_sensor, oscillator_at_rest, focal_when_sure,
         grown_loss_scale, policy_ratio, padded_attention, long_sequence, contrastive_blank, layer_norm_of_padding]


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "healthy"]
    wanted = [word for word in words if "=" not in word]
    backend = ["inductor", *(word.removeprefix("backend=") for word in words if "=" in word)][-1]
    for case in CASES:
        if not wanted or case.__name__ in wanted:
            torch.manual_seed(0)
            loss, weights = case(backend)
            print(case.__name__, loss, all(bool(weight.isfinite().all()) for weight in weights), flush=True)
