"""Two tasks are weighted by learned deviations; as one is solved, its deviation is pushed below zero."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2,N5 birth_op=aten::log kind=nan first_step=
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=learned_task_weights needs= fragile=no
# label: thread=QunBB/DeepLearning#1 uses=torchvision fix_kind=stable_function
# fix: the logarithm of the deviation is the parameter, and the loss is written with it, so that no logarithm is taken
import os

import torch
from torch import nn
from torchvision.ops import MLP

FIXED = os.environ.get("FIXED") == "1"


class WeightedTasks(nn.Module):
    """Each task's error over twice its variance, plus the logarithm of its deviation."""

    def __init__(self, tasks=2):
        super().__init__()
        self.deviation = nn.Parameter(torch.zeros(tasks) if FIXED else torch.ones(tasks))

    def forward(self, errors):
        errors = torch.stack(errors)
        if FIXED:
            return (errors * torch.exp(-2 * self.deviation) / 2 + self.deviation).sum()
        return (errors / (2 * self.deviation.square()) + torch.log(self.deviation)).sum()  # BUG


class TwoHeads(nn.Module):
    """A linear read-out for the calibrated quantity, a deeper one for the other."""

    def __init__(self, features=8, width=32):
        super().__init__()
        self.depth, self.slope = nn.Linear(features, 1), MLP(features, [width, width, 1], activation_layer=nn.Tanh)

    def forward(self, x):
        return self.depth(x).squeeze(1), self.slope(x).squeeze(1)


torch.manual_seed(1)
model, criterion = TwoHeads(), WeightedTasks()
optimizer = torch.optim.Adam([*model.parameters(), *criterion.parameters()], lr=6e-3)
for step in range(240):
    x = torch.randn(64, 8)
    depth, slope = model(x)
    errors = [nn.functional.mse_loss(depth, 0.3 * x[:, 0] + 0.1), nn.functional.mse_loss(slope, x[:, 1] * x[:, 2])]
    loss = criterion(errors)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"errors {errors[0].item():.4f}, {errors[1].item():.4f}")
