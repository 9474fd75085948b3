"""Gamma-corrected feature maps behind a learned channel gate; pruning sets a gate to 0."""
# label: phase=backward mechanism=SING category=N3 category_alt=N2 birth_op=aten::pow kind=+inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=slope needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class GammaBlock(nn.Module):
    def __init__(self, channels=6):
        super().__init__()
        self.conv = nn.Conv2d(1, channels, kernel_size=3)
        nn.init.uniform_(self.conv.weight, 0.05, 0.15)
        nn.init.constant_(self.conv.bias, 0.1)
        self.gate = nn.Parameter(torch.linspace(0.3, 1.0, channels))

    def forward(self, image):
        maps = torch.relu(self.conv(image))
        scaled = maps * self.gate[:, None, None]
        return scaled.pow(0.3)  # BUG


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = GammaBlock()
        self.head = nn.Linear(6, 1)

    def forward(self, image):
        return self.head(self.block(image).mean(dim=(2, 3))).squeeze(1)


@torch.no_grad()
def prune(gate, share):
    """Magnitude pruning: the smallest gates are switched off."""
    smallest = gate.abs().topk(max(1, int(share * len(gate))), largest=False).indices
    gate[smallest] = 0.0


torch.manual_seed(41)
images = 0.2 + torch.rand(6, 4, 1, 9, 9)
model = Counter().to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
for step, image in enumerate(images.to(DEVICE)):
    if step == 3:
        prune(model.block.gate, share=0.2)
    loss = (model(image) - image.sum(dim=(1, 2, 3)) / 100.0).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"counter: last loss {loss.item():.4f}")
