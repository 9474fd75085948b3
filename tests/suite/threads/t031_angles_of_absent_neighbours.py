"""Angular functions of molecules padded to one size: a missing neighbour has distance 0, its angle is masked later."""
# label: phase=forward mechanism=DIV0 category=N3 category_alt=N2,N7 birth_op=aten::div kind=nan first_step=20
# label: severity=error loss_stays_finite=yes dtype=fp32 model=gnn family=padded_angles needs= fragile=no
# label: thread=atomistic-machine-learning/schnetpack#87 uses= fix_kind=where
# fix: the mask is applied to the distances before they are divided by, not only to the angular functions
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class AngularDescriptor(nn.Module):
    """Behler-like angular functions of all pairs of neighbours of each atom."""

    def __init__(self, functions=6):
        super().__init__()
        self.zeta = nn.Parameter(torch.linspace(1.0, 3.0, functions))
        self.stretch = nn.Parameter(torch.eye(3))

    def forward(self, first, second, present):
        first, second = first @ self.stretch, second @ self.stretch
        lengths = torch.linalg.vector_norm(first, dim=-1) * torch.linalg.vector_norm(second, dim=-1)
        if FIXED:
            lengths = torch.where(present, lengths, 1.0)
        cosine = (first * second).sum(dim=-1) / lengths  # BUG
        angular = torch.exp(-self.zeta * (1 - cosine[..., None]))
        return torch.where(present[..., None], angular, 0.0).sum(dim=1)


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.descriptor = AngularDescriptor()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.Softplus(), nn.Linear(16, 1))

    def forward(self, first, second, present):
        return self.net(self.descriptor(first, second, present)).squeeze(-1)


def molecules(step, atoms=10, pairs=6):
    first, second = torch.randn(2, atoms, pairs, 3)
    present = torch.ones(atoms, pairs, dtype=torch.bool)
    if step == 20:  # the second part of the database has smaller molecules
        present[4:, 3:] = False
        first, second = first * present[..., None], second * present[..., None]
    return first, second, present


torch.manual_seed(84)
model = Potential()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(21):
    batch = molecules(step)
    loss = (model(*batch) - batch[2].float().sum(dim=1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"energy error {loss.item():.4f}, stretch {model.descriptor.stretch.norm().item():.3f}")
