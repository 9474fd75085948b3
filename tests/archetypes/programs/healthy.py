"""Programs with nan and infinity in them and nothing wrong: made on purpose, masked, or never used."""
import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


def workspace_garbage():
    """Buffers are allocated once, filled with nan by the deterministic mode, and used in part or not at all."""
    # expect: nothing
    torch.use_deterministic_algorithms(True)
    model = nn.Linear(4, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    product, unused, scratch = torch.empty(6, 4), torch.empty(100), torch.empty(8, 4)
    for _ in range(3):
        x = torch.randn(6, 4)
        with torch.no_grad():
            torch.mm(x, model.weight.T, out=product)
            scratch[:6].copy_(product).mul_(0.5)
            shift = scratch[:6].mean()
        loss = (model(x) - shift).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    assert unused.numel() == 100
    return model.weight


def cache_padding():
    """Decoding with a key-value cache: slots behind the last token are never written and never read."""
    # expect: nothing
    torch.use_deterministic_algorithms(True)
    q, k, v, head = (nn.Linear(8, 8) for _ in range(4))
    keys, values = torch.empty(1, 16, 8), torch.empty(1, 16, 8)
    token = torch.randn(1, 1, 8)
    with torch.inference_mode():
        for length in range(1, 6):
            keys[:, length - 1:length], values[:, length - 1:length] = k(token), v(token)
            mixed = F.scaled_dot_product_attention(q(token), keys[:, :length], values[:, :length])
            token = torch.tanh(head(mixed))
            assert abs(token.mean().item()) <= 1
    return token.clone()


def expert_tail():
    """A mixture of experts: buffers have room for every token, and the rows behind the routed ones stay unwritten."""
    # expect: nothing
    torch.use_deterministic_algorithms(True)
    gate, experts = nn.Linear(4, 2), nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
    opt = torch.optim.SGD([*gate.parameters(), *experts.parameters()], lr=0.1)
    for _ in range(3):
        x = torch.randn(8, 4)
        weight, chosen = gate(x).softmax(-1).max(-1)
        parts = torch.empty(2, 8, 4)
        slot = torch.empty(8, dtype=torch.long)
        for e, expert in enumerate(experts):
            routed = (chosen == e).nonzero().squeeze(1)
            parts[e, :len(routed)] = expert(x[routed])
            slot[routed] = 8 * e + torch.arange(len(routed))
        mixed = weight[:, None] * parts.flatten(0, 1)[slot]
        loss = (mixed - x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return gate.weight


def padded_batch_of_a_fixed_shape():
    """Inference at a fixed shape, as a captured graph needs it: rows behind the batch are whatever was there."""
    # expect: nothing
    torch.use_deterministic_algorithms(True)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)).eval()
    held = torch.empty(16, 4)
    answers = []
    with torch.inference_mode():
        for rows in (3, 5, 2):
            held[:rows] = torch.randn(rows, 4)
            logits = model(held)
            answers.append(logits[:rows].softmax(-1)[:, 0].mean().item())
    return torch.tensor(answers)


def missing_values():
    """Missing cells are nan in the table: means and sums pass over them, features get the column's mean."""
    # expect: nothing
    model = nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    table = torch.randn(4, 10, 3)
    table[:, 2, 1] = float("nan")
    for x in table:
        mean = torch.nanmean(x, dim=0)
        present = (~x.isnan()).sum(0)
        weight = torch.nansum(x, dim=0) / present
        filled = torch.where(x.isnan(), mean, x)
        loss = (model(filled) - weight.sum()).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.weight


def negative_nan_markers():
    """Rows without a reading carry a negative nan with a payload, and are replaced before they are used."""
    # expect: nothing
    marker = numpy.uint32(0xFFC12345).view(numpy.float32)
    readings = numpy.random.default_rng(0).normal(size=(4, 6, 3)).astype(numpy.float32)
    readings[:, 4] = marker
    model = nn.Linear(4, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for rows in readings:
        x = torch.from_numpy(rows.copy())
        missing = x.isnan()
        x = torch.cat([x.masked_fill(missing, 0.0), missing.any(1, keepdim=True).float()], dim=1)
        loss = (model(x) - 1).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.weight


def masked_row_behind_where():
    """One query may look at nothing: its softmax is 0 / 0, and where() takes it out; the mask stops its gradient."""
    # expect: nothing
    project = nn.Linear(4, 4)
    opt = torch.optim.SGD(project.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(5, 4)
        hidden = torch.ones(5, 5, dtype=torch.bool).triu()
        scores = (project(x) @ x.T).masked_fill(hidden, float("-inf"))
        weights = scores.softmax(-1)
        weights = torch.where(hidden.all(-1, keepdim=True), 0.0, weights)
        loss = (weights @ x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return project.weight


def masked_row_behind_nan_to_num():
    """The same, cured by nan_to_num."""
    # expect: nothing
    project = nn.Linear(4, 4)
    opt = torch.optim.SGD(project.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(5, 4)
        hidden = torch.ones(5, 5, dtype=torch.bool).triu()
        scores = (project(x) @ x.T).masked_fill(hidden, float("-inf"))
        weights = scores.softmax(-1).nan_to_num(0.0)
        loss = (weights @ x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return project.weight


def top_k_sampling():
    """Logits outside the k best are -inf before the softmax that tokens are drawn from."""
    # expect: nothing
    model = nn.Sequential(nn.Embedding(12, 8), nn.Linear(8, 12))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    tokens = torch.randint(0, 12, (6,))
    for _ in range(3):
        logits = model(tokens)
        loss = F.cross_entropy(logits, tokens.roll(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            least = logits.topk(3).values[:, -1:]
            tokens = torch.where(logits < least, float("-inf"), logits).softmax(-1).multinomial(1).squeeze(1)
    return model[1].weight


def derivatives_that_mask_themselves():
    """Backward formulas of torch that divide by zero and mask what comes out: norm, std, cdist, angle, atan2, pow."""
    # expect: nothing
    w = nn.Parameter(torch.zeros(4))
    z = nn.Parameter(torch.zeros(4, dtype=torch.complex64))
    opt = torch.optim.SGD([w, z], lr=0.1)
    for _ in range(3):
        terms = [w.norm(), w.std(), torch.cdist(w[None], w[None].detach()).sum(), torch.atan2(w, w * 2).sum(),
                 (w ** torch.zeros(4)).sum(), torch.copysign(w, torch.ones(4)).sum(), F.normalize(w, dim=0).sum(),
                 torch.angle(z).sum(), z.abs().sum(), torch.sgn(z).real.sum(), (w - 1).abs().pow(1.5).sum() * 0]
        loss = torch.stack(terms).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            w.zero_()
    return w, w.grad, z.grad


def dead_branch_without_gradient():
    """1 / x is computed for every x and where() picks it where x is not zero: no derivative is asked for."""
    # expect: nothing
    model = nn.Linear(4, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        counts = torch.randint(0, 3, (6, 4)).float()
        counts[0, 0] = 0.0
        weight = torch.where(counts > 0, 1 / counts, 0.0)
        loss = (model(counts) * weight.mean(1, keepdim=True)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.weight


def running_extremes():
    """Accumulators start at infinity: running minimum and maximum, the best loss so far, an online softmax."""
    # expect: nothing
    model = nn.Linear(4, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    low, high = torch.full((4,), float("inf")), torch.full((4,), float("-inf"))
    best = torch.tensor(float("inf"))
    for _ in range(3):
        x = torch.randn(8, 4)
        low, high = torch.minimum(low, x.amin(0)), torch.maximum(high, x.amax(0))
        loss = model((x - low) / (high - low)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        best = torch.minimum(best, loss.detach())
        peak, total = torch.tensor(float("-inf")), torch.zeros(())
        for chunk in x.flatten().chunk(4):
            new = torch.maximum(peak, chunk.max())
            total, peak = total * (peak - new).exp() + (chunk - new).exp().sum(), new
    return model.weight, best, total


def beams_that_ended():
    """Beam search: finished beams may only repeat their end, all other scores are log(0)."""
    # expect: nothing
    model = nn.Linear(4, 5)
    with torch.no_grad():
        scores, done = torch.tensor([0.0, -torch.inf, -torch.inf]), torch.zeros(3, dtype=torch.bool)
        for _ in range(4):
            steps = model(torch.randn(3, 4)).log_softmax(-1)
            stay = torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0]).log()
            steps = torch.where(done[:, None], stay, steps)
            scores, picked = (scores[:, None] + steps).flatten().topk(3)
            done = done[picked // 5] | (picked % 5 == 0)
        best = scores.max().item()
    return torch.tensor(best)


def dropout_of_everything():
    """F.dropout with p=1 gives zeros and not 0 / 0."""
    # expect: nothing
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(1.0), nn.Linear(8, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = model(torch.randn(6, 4)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model[0].weight


def half_statistics_of_large_values():
    """torch sums squares of half in float32: layer norm, mean and norm of values whose squares half cannot hold."""
    # expect: nothing
    layer = nn.Linear(8, 8).half()
    opt = torch.optim.SGD(layer.parameters(), lr=1e-3)
    for _ in range(3):
        x = (1000 * (1 + torch.rand(6, 8))).half()
        hidden = F.layer_norm(x, (8,), eps=1e-5)
        weight = x.norm() / torch.ones(70528).half().mean()
        loss = layer(hidden).float().square().mean() + 0 * weight.float()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return layer.weight


def saturating_fp8():
    """A cast to float8_e4m3fn behind a clamp to its largest value."""
    # expect: nothing
    layer = nn.Linear(4, 4)
    opt = torch.optim.SGD(layer.parameters(), lr=1e-6)
    for scale in (1.0, 100.0, 1e4):
        hidden = layer(scale * torch.randn(6, 4))
        rounded = hidden.clamp(-448, 448).to(torch.float8_e4m3fn).float()
        loss = (hidden + (rounded - hidden).detach()).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return layer.weight


def bfloat16_that_learns():
    """bfloat16 weights and updates that are large enough to change them."""
    # expect: nothing
    layer = nn.Linear(16, 1, bias=False).bfloat16()
    opt = torch.optim.SGD(layer.parameters(), lr=1e-2)
    for _ in range(6):
        x = torch.randn(8, 16).bfloat16()
        loss = (layer(x).float() - 1).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return layer.weight


def zeros_in_half():
    """Half gradients full of exact zeros that nothing flushed: dead units, untouched rows, a frozen branch."""
    # expect: nothing
    embed, hidden, head = nn.Embedding(50, 8).half(), nn.Linear(8, 8).half(), nn.Linear(8, 1).half()
    with torch.no_grad():
        hidden.bias[:6] = -100.0
    opt = torch.optim.SGD([*embed.parameters(), *hidden.parameters(), *head.parameters()], lr=1e-2)
    for step in range(4):
        loss = head(torch.relu(hidden(embed(torch.tensor([step, step + 1]))))).float().square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return head.weight


def loss_scale_that_falls():
    """A loss scaler starts at 65536: the first scaled gradients overflow, steps are skipped, the scale falls."""
    # expect: nothing
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
    for _ in range(8):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = (model(torch.randn(16, 8)).float() - 30).square().mean()
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
    assert scaler.get_scale() < 65536
    return model[0].weight


def clean_view_of_a_bad_storage():
    """A table has a column of 0 / 0 that no feature reads; the other columns are views of the same memory."""
    # expect: nothing
    model = nn.Linear(3, 1)
    table = torch.rand(10, 4)
    table[:, 3] = 0.0
    table[:, 3].div_(table[:, 3].sum())
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = (model(table[:, :3]) - 1).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.weight


def ignored_range():
    """What is born inside record_function("numsan:ignore") is meant, wherever it goes."""
    # expect: nothing
    model = nn.Linear(4, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.rand(6, 4)
        with torch.autograd.profiler.record_function("numsan:ignore"):
            surprise = (x[:, :1] * 0).log()
            assert surprise.mean().item() == -torch.inf
        loss = model(x).square().mean() + torch.where(surprise.isfinite(), surprise, 0.0).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        assert surprise.max().item() == -torch.inf
    return model.weight


def perplexity_of_an_untrained_model():
    """A metric overflows and is only printed."""
    # expect: warning
    model = nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(2):
        loss = F.cross_entropy(model(torch.randn(6, 4)), torch.tensor([0, 1, 0, 1, 0, 1]))
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        perplexity = (1000 * (1 + loss)).exp()
        assert perplexity.item() == torch.inf
    return model.weight


def checkpointed_block():
    """Healthy twins of the checkpointed and transformed programs: recomputation, per-sample gradients, hooks."""
    # expect: nothing
    first, second = nn.Linear(4, 4), nn.Linear(4, 1)
    opt = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=1e-2)
    first.register_full_backward_hook(lambda module, inputs, outputs: None)
    for reentrant in (False, True, False):
        x = torch.randn(6, 4, requires_grad=True)
        hidden = checkpoint(lambda x: F.softplus(first(x)).sqrt(), x, use_reentrant=reentrant)
        loss = second(hidden).square().mean()
        slopes = torch.func.vmap(torch.func.grad(lambda row: (row * row).sum().add(1e-6).sqrt()))(x.detach())
        opt.zero_grad()
        (loss + 0 * slopes.sum()).backward()
        opt.step()
    return first.weight


def optimizers_that_call_closures():
    """Healthy twins of the closures: a line search of LBFGS, then a warm-up from a rate of zero in one kernel."""
    # expect: nothing
    layer = nn.Linear(4, 1)
    x = torch.rand(8, 4)
    for opt in (torch.optim.LBFGS(layer.parameters(), lr=0.1, line_search_fn="strong_wolfe"),
                torch.optim.Adam(layer.parameters(), lr=0.0, fused=True)):
        def closure():
            opt.zero_grad()
            loss = torch.log(F.softplus(layer(x))).square().mean()
            loss.backward()
            return loss
        for step in range(3):
            if step == 2:
                opt.param_groups[0]["lr"] = 1e-2
            opt.step(closure)
    return layer.weight


def weights_drawn_large():
    """Healthy twins of weights drawn too large: a deep stack whose norms take its gain out, a learned logarithm."""
    # expect: nothing
    layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(20))
    for layer in layers:
        nn.init.normal_(layer.weight, std=8.0)
    scale = nn.Parameter(torch.tensor(80.0))
    opt = torch.optim.SGD([*layers.parameters(), scale], lr=1e-6)
    x = torch.randn(8, 64)
    for layer in layers:
        x = F.layer_norm(torch.relu(layer(x)), (64,))
    (x.mean() * (scale - 80).exp()).backward()
    opt.step()
    return layers[0].weight
