"""A transducer loss by hand: the lattice in log space by diagonals, -inf where no path leads."""
import torch
from state import show
from torch import nn

torch.manual_seed(0)
INFINITY = float("inf")


def shifted(row, lead):
    """`row` one place later, `lead` first."""
    return torch.cat([row.new_full((1,), lead), row[:-1]])


def log_add(a, b):
    """log(exp(a) + exp(b)) that lets -inf through: neither value nor gradient becomes NaN."""
    top = torch.maximum(a, b).detach()
    dead = top == -INFINITY
    top = top.masked_fill(dead, 0.0)
    total = (a - top).exp() + (b - top).exp()
    return (total.masked_fill(dead, 1.0).log() + top).masked_fill(dead, -INFINITY)


def transducer_loss(logs, text):
    """-log p(text) of one sample; `logs` is frames x (letters + 1) x classes, 0 is the blank."""
    frames, places = logs.shape[:2]
    blank = logs[:, :, 0]
    emit = logs[:, :-1].gather(2, text[None, :, None].expand(frames, -1, 1)).squeeze(2)
    emit = torch.cat([emit, emit.new_full((frames, 1), -INFINITY)], 1)
    row = torch.full((places,), -INFINITY)
    row[0] = 0.0
    place = torch.arange(places)
    for diagonal in range(1, frames + places - 1):
        time = diagonal - place
        waited = (time >= 1) & (time <= frames - 1)
        rest = (row + blank[(time - 1).clamp(0, frames - 1), place]).masked_fill(~waited, -INFINITY)
        spoken = (time >= 0) & (time <= frames - 1) & (place >= 1)
        before = emit[time.clamp(0, frames - 1), (place - 1).clamp(min=0)]
        move = (shifted(row, -INFINITY) + before).masked_fill(~spoken, -INFINITY)
        row = log_add(rest, move)
    return -(row[-1] + blank[-1, -1])


class Transducer(nn.Module):
    """Encoder over frames, predictor over letters, joined by addition."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.LSTM(5, 16, batch_first=True)
        self.letters = nn.Embedding(6, 16)
        self.predictor = nn.GRU(16, 16, batch_first=True)
        self.join = nn.Linear(16, 6)

    def forward(self, sound, text):
        heard = self.encoder(sound)[0]
        said = self.predictor(self.letters(nn.functional.pad(text, (1, 0))))[0]
        return self.join(torch.tanh(heard[:, :, None] + said[:, None])).log_softmax(-1)


model = Transducer()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(50):
    text = torch.randint(1, 6, (3, 3))
    sound = nn.functional.one_hot(text.repeat_interleave(2, 1) - 1, 5) + 0.1 * torch.randn(3, 6, 5)
    losses = [transducer_loss(*sample) for sample in zip(model(sound, text), text)]
    loss = torch.stack(losses).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, loss.item())
show(model)
