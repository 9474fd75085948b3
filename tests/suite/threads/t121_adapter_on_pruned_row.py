"""Weight-decomposed adapters are put on a pruned network: a row of zeros has no direction to be normalised to."""
# label: phase=forward mechanism=DIV0 category=N2 category_alt=N6,N7 birth_op=aten::div kind=nan first_step=22
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=adapter_weight_norm needs= fragile=no
# label: thread=KohakuBlueleaf/LyCORIS#166 uses= fix_kind=eps
# fix: a small number of the weight's type is added to the norm by which the merged weight is divided
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class DecomposedAdapter(nn.Module):
    """weight = magnitude * direction; the direction is tuned by a product of two thin matrices that starts at zero."""

    def __init__(self, base, rank=4, alpha=4.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank
        self.magnitude = nn.Parameter(base.weight.norm(dim=1, keepdim=True))

    def forward(self, x):
        merged = self.base.weight + self.scale * self.up @ self.down
        length = merged.norm(dim=1, keepdim=True)
        if FIXED:
            length = length + torch.finfo(length.dtype).eps
        return nn.functional.linear(x, self.magnitude * (merged / length), self.base.bias)  # BUG


class Classifier(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.inp, self.mid, self.out = nn.Linear(12, width), nn.Linear(width, width), nn.Linear(width, 3)

    def forward(self, x):
        return self.out(torch.relu(self.mid(torch.relu(self.inp(x)))))


def train(model, teacher, steps, lr):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    for _ in range(steps):
        x = torch.randn(64, 12)
        loss = nn.functional.cross_entropy(model(x), (x @ teacher).argmax(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def prune_units(layer, share):
    """Removes the least useful units, weight and bias."""
    weakest = layer.weight.norm(dim=1).argsort()[: int(share * layer.out_features)]
    layer.weight[weakest] = 0.0
    layer.bias[weakest] = 0.0


torch.manual_seed(121)
model = Classifier()
before = train(model, torch.randn(12, 3), steps=22, lr=5e-3)
prune_units(model.mid, 0.25)
model.requires_grad_(False)
model.mid = DecomposedAdapter(model.mid)
after = train(model, torch.randn(12, 3), steps=12, lr=5e-3)
print(f"loss {before:.4f}, of the new task {after:.4f}")
