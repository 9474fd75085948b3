"""A frozen backbone guides a student; in half precision the variance of a nearly dead channel is zero."""
# label: phase=forward mechanism=DIV0 category=N5 category_alt=N8,N7 birth_op=aten::rsqrt kind=+inf first_step=24
# label: severity=error loss_stays_finite=no dtype=fp16 model=cnn family=frozen_norm_epsilon needs= fragile=no
# label: thread=pytorch/vision#2599 uses=torchvision fix_kind=config
# fix: the default epsilon of the frozen normalisation is no longer 0 but 1e-5, as that of the trained one is; a small
# fix: variance that is lost in half precision then does no harm
import os

import torch
from torch import nn
from torchvision.ops import FrozenBatchNorm2d

FIXED = os.environ.get("FIXED") == "1"
EPSILON = 1e-5 if FIXED else 0.0


class Stage(nn.Module):
    def __init__(self, inputs, channels):
        super().__init__()
        self.convolution = nn.Conv2d(inputs, channels, 3, stride=2, padding=1, bias=False)
        self.norm = FrozenBatchNorm2d(channels, eps=EPSILON)  # BUG-ALT

    def forward(self, x):
        return torch.relu(self.norm(self.convolution(x)))  # BUG


@torch.no_grad()
def backbone():
    """Two stages whose statistics are those of their own features, as after a long training."""
    stages, x = nn.Sequential(Stage(3, 12), Stage(12, 16)), torch.randn(64, 3, 24, 24)
    decayed = torch.ones(12, 1, 1, 1)
    decayed[5] = 1e-5  # weight decay has all but removed this filter
    stages[0].convolution.weight.mul_(decayed)
    for stage in stages:
        x = stage.convolution(x)
        stage.norm.running_mean.copy_(x.mean(dim=(0, 2, 3)))
        stage.norm.running_var.copy_(x.var(dim=(0, 2, 3)))
        x = torch.relu(stage.norm(x))
    return stages.requires_grad_(False).eval()


torch.manual_seed(2599)
teacher = backbone()
student = nn.Sequential(nn.Conv2d(3, 16, 7, stride=4, padding=3), nn.GELU(), nn.Conv2d(16, 16, 1))
optimizer = torch.optim.AdamW(student.parameters(), lr=2e-3)
for step in range(28):
    if step == 24:
        teacher = teacher.half()  # larger pictures follow, memory gets scarce
    pictures = torch.randn(8, 3, 24, 24)
    with torch.no_grad():
        wanted = teacher(pictures.to(next(teacher.parameters()).dtype)).float()
    loss = nn.functional.smooth_l1_loss(student(pictures), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"imitation loss {loss.item():.4f}")
