"""Float16 autocast with a gradient scaler that grows, doubles too often now and then, and backs off.

The bug: late batches are not scaled to the unit interval, a square leaves float16's range, and its quotient is NaN.
"""
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(64, 64)
        self.norm = nn.LayerNorm(64)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        h = torch.relu(self.features(x))
        energy = h * h  # BUG
        return self.head(self.norm(energy / (1 + energy.mean(1, keepdim=True))))


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    model = Net()
    prototypes = torch.rand(10, 64)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 16, growth_interval=200)
    for step in range(STEPS):
        label = torch.randint(10, (32,))
        image = (prototypes[label] + 0.2 * torch.randn(32, 64)).clamp(0, 1)
        if step >= BUG_STEP:
            image = image * 255
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(image.half()).float(), label)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    print(f"{loss.item():.9g} {scaler.get_scale():.9g}")


main()
