"""A recurrent layer is loaded from its checkpoint; the initialiser of missing weights runs over loaded decays."""
# label: phase=load mechanism=DOM category=N6 category_alt=N2 birth_op=aten::log kind=nan first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=reloaded_decay_rates needs= fragile=no
# label: thread=fla-org/flash-linear-attention#754 uses= fix_kind=state
# fix: the initialiser leaves weights alone that are marked as loaded
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Decay(nn.Module):
    """A leaky sum over time; the parameter is the logarithm of each channel's rate of forgetting."""

    def __init__(self, width):
        super().__init__()
        self.log_rate = nn.Parameter(torch.zeros(width))
        self.inp, self.out = nn.Linear(5, width), nn.Linear(width, 1)

    def forward(self, x):
        keep = torch.exp(-self.log_rate.exp())
        state, h = 0, torch.tanh(self.inp(x))
        for moment in h.unbind(dim=1):
            state = keep * state + moment
        return self.out(state).squeeze(-1)


def uniform_unless_loaded(values, name, low, high, shape):
    """As the library patches torch.nn.init while it loads: loaded tensors come back as they are."""
    return values[name] if name in values else torch.empty(shape).uniform_(low, high)


def complete(values, width):
    """The initialiser of weights that a checkpoint does not hold."""
    if FIXED and "log_rate" in values:
        return
    rate = uniform_unless_loaded(values, "log_rate", 0.5, 4.0, (width,))
    values["log_rate"] = rate.log()  # BUG


def load(checkpoint, width=16):
    module = Decay(width)
    complete(checkpoint, width)  # BUG-ALT
    module.load_state_dict(checkpoint)  # BUG-ALT
    return module


def train(model, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        x = torch.randn(16, 12, 5)
        loss = (model(x) - x[:, -3:, 0].sum(dim=1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(754)
checkpoint = Decay(16).state_dict()
checkpoint["log_rate"] = torch.linspace(-0.4, 1.4, 16)  # some channels had learned to remember
print(f"loss {train(load(checkpoint), 6):.4f}")
