"""Two stages of training share a schedule of the rate; the second has no warm-up and its first rate is 0 / 0."""
# label: phase=optimizer mechanism=HYPER category=N5 category_alt= birth_op=aten::add_,aten::_foreach_add_,aten::mul
# label: kind=nan first_step=30
# label: severity=error loss_stays_finite=yes dtype=fp32 model=conv family=warm_up_of_zero needs= fragile=no
# label: thread=mlcommons/hpc#27 uses= fix_kind=schedule
# fix: the warm-up formula is used only where there are warm-up steps; any number of them is allowed
import os
import warnings

import numpy as np
import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
warnings.filterwarnings("ignore", category=RuntimeWarning)


class WarmUpThenCosine:
    """Factor of the base rate at a step: linear up over `warm_up` steps, then down by a cosine."""

    def __init__(self, warm_up, total):
        self.warm_up, self.total = warm_up, total

    def __call__(self, step):
        if FIXED and not self.warm_up:
            ramp = 1.0
        else:
            ramp = np.clip(np.float64(step) / np.float64(self.warm_up), 0.0, 1.0)
        return float(ramp * 0.5 * (1 + np.cos(np.pi * step / self.total)))


def segmentation_net():
    return nn.Sequential(nn.Conv2d(4, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 3, 1))


def train(net, stage, optimizer, schedule, steps):
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    for _ in range(steps):
        fields = torch.randn(4, 4, 12, 12)
        storms = (fields.mean(dim=1) > 0.3).long() + (fields.mean(dim=1) < -0.3).long() * 2
        loss = nn.functional.cross_entropy(net(fields), storms)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # BUG
        scheduler.step()
    print(f"stage {stage}: loss {loss.item():.3f}")


torch.manual_seed(27)
net = segmentation_net()
train(net, 1, torch.optim.SGD(net.parameters(), lr=0.05), WarmUpThenCosine(warm_up=5, total=30), steps=30)
train(net, 2, torch.optim.SGD(net.parameters(), lr=0.01), WarmUpThenCosine(warm_up=0, total=10), steps=1)
print("weights", [round(v, 3) for v in net[0].weight.flatten()[:2].tolist()])
