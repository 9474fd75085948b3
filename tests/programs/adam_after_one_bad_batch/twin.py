"""The sensor of victim.py with its gap filled, as the loader of a careful program does."""
import copy

import torch
from torch import nn


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.register_buffer("output_mean", torch.zeros(3))
        self.register_buffer("input_mean", torch.zeros(4))

    def forward(self, x):
        y = self.layer(x)
        with torch.no_grad():
            self.output_mean.lerp_(y.mean(0), 0.1)
            self.input_mean = 0.9 * self.input_mean + 0.1 * x.mean(0)
        return y


torch.manual_seed(0)
student = Regressor()
teacher = copy.deepcopy(student).requires_grad_(False)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
for step in range(8):
    batch = torch.rand(8, 4)
    if step == 3:
        batch[2, 1] = 0.5
    loss = student(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(teacher.parameters(), student.parameters()):
            slow.lerp_(fast, 0.05)
    print(step, f"{loss.item():.3f}")
