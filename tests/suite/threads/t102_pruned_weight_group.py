"""Quantisation-aware training of a pruned classifier: the clamp of a group's scale is computed, then thrown away."""
# label: phase=forward mechanism=DIV0 category=N2 category_alt=N7,N6 birth_op=aten::div kind=nan first_step=24
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=quantiser_scale_clip needs= fragile=no
# label: thread=OpenGVLab/OmniQuant#33 uses= fix_kind=clamp
# fix: the line that put the unclamped scale back is removed, so that the lower bound of the scale holds
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
CLIP_MIN, GROUP = 1e-5, 8


def round_through(x):
    return x + (x.round() - x).detach()


class GroupQuantiser(nn.Module):
    """Asymmetric, one scale per group of weights, with learned bounds of the range."""

    def __init__(self, groups, bits=4):
        super().__init__()
        self.levels = 2**bits - 1
        self.upper = nn.Parameter(torch.full((groups, 1), 4.0))
        self.lower = nn.Parameter(torch.full((groups, 1), 4.0))

    def forward(self, weight):
        flat = weight.reshape(-1, GROUP)
        high = flat.amax(dim=1, keepdim=True) * torch.sigmoid(self.upper)
        low = flat.amin(dim=1, keepdim=True) * torch.sigmoid(self.lower)
        span = high - low
        scale = (span / self.levels).clamp(min=CLIP_MIN, max=1e4)
        if not FIXED:
            scale = span / self.levels  # BUG-ALT
        zero_point = round_through(-low / scale)  # BUG
        levels = (round_through(flat / scale) + zero_point).clamp(0, self.levels)
        return ((levels - zero_point) * scale).reshape(weight.shape)


class QuantLinear(nn.Linear):
    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.quantiser = GroupQuantiser(inputs * outputs // GROUP)
        self.register_buffer("mask", torch.ones(outputs, inputs))

    def forward(self, x):
        return nn.functional.linear(x, self.quantiser(self.weight * self.mask), self.bias)

    @torch.no_grad()
    def prune(self, share):
        groups = self.weight.reshape(-1, GROUP).norm(dim=1)
        weakest = groups.argsort()[: int(share * len(groups))]
        self.mask.view(-1, GROUP)[weakest] = 0.0


torch.manual_seed(102)
model = nn.Sequential(QuantLinear(16, 32), nn.ReLU(), QuantLinear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
teacher = torch.randn(16, 4)
for step in range(36):
    if step >= 24 and step % 4 == 0:  # cubic sparsity ramp, after a dense phase
        for layer in (model[0], model[2]):
            layer.prune(0.3 * (1 - (1 - (step - 20) / 16) ** 3))
    x = torch.randn(64, 16)
    loss = nn.functional.cross_entropy(model(x), (x @ teacher).argmax(dim=1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"quantised loss {loss.item():.4f}")
