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
        self.loaded = set()

    def forward(self, x):
        keep = torch.exp(-self.log_rate.exp())
        state, h = 0, torch.tanh(self.inp(x))
        for moment in h.unbind(dim=1):
            state = keep * state + moment
        return self.out(state).squeeze(-1)


def uniform_unless_loaded(module, name, low, high):
    """As the library patches torch.nn.init while it loads: loaded tensors come back as they are."""
    tensor = getattr(module, name)
    return tensor.data if name in module.loaded else torch.empty_like(tensor).uniform_(low, high)


@torch.no_grad()
def initialise(module):
    if FIXED and "log_rate" in module.loaded:
        return
    rate = uniform_unless_loaded(module, "log_rate", 0.5, 4.0)
    module.log_rate.copy_(rate.log())  # BUG


def load(path_like, width=16):
    module = Decay(width)
    module.load_state_dict(path_like)
    module.loaded.update(name for name, _ in module.named_parameters())
    initialise(module)  # BUG-ALT
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
first = Decay(16)
initialise(first)
before = train(first, 20)
checkpoint = {name: value.clone() for name, value in first.state_dict().items()}
checkpoint["log_rate"][::4] = -0.4  # channels that learned to remember
print(f"loss {before:.4f}, after loading {train(load(checkpoint), 4):.4f}")
