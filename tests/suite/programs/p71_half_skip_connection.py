"""CT reconstruction in half: raw detector counts are added to their own skip connection."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N1,N7 birth_op=aten::add kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp16 model=unet family=half needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class IdentityUNet(nn.Module):
    """Starts as the identity: the inner path copies its input, the skip adds it again."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Parameter(torch.ones(1))
        self.scale = nn.Parameter(torch.full((1,), 0.5))

    def forward(self, counts):
        deep = counts * self.inner
        merged = deep + counts  # BUG
        return merged * self.scale


torch.manual_seed(14)
model = IdentityUNet().half().to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=1e-9)


def scan(step):
    """Detector counts of one slice; the third slice crosses a metal implant."""
    counts = torch.randint(100, 2000, (1, 1, 16, 16)).float()
    if step == 2:
        counts[:, :, 4:8, 4:8] = 40000.0
    return counts


for step in range(4):
    counts = scan(step)
    clean = counts.to(DEVICE)
    restored = model(counts.half().to(DEVICE))
    loss = nn.functional.l1_loss(restored.float(), clean)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p71 loss", loss.item())
