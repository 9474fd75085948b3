"""A normalisation takes the variance over each map of a picture; a small picture leaves maps of one pixel."""
# label: phase=forward mechanism=DIV0 category=N7 category_alt=N2 birth_op=aten::var,aten::std kind=nan first_step=21
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=evolving_norm needs= fragile=no
# label: thread=digantamisra98/EvoNorm#5 uses= fix_kind=guard
# fix: where the variance is not a number, it is zero
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class EvolvedNorm(nn.Module):
    """x over the larger of the batch's deviation and v x plus the picture's own deviation."""

    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.scale, self.slope = (nn.Parameter(torch.ones(1, channels, 1, 1)) for _ in range(2))
        self.shift, self.eps = nn.Parameter(torch.zeros(1, channels, 1, 1)), eps

    def forward(self, x):
        batch = (x.var(dim=(0, 2, 3), unbiased=False, keepdim=True) + self.eps).sqrt()
        if FIXED and x.shape[2] * x.shape[3] == 1:
            own = torch.full_like(x, self.eps).sqrt()
        else:
            own = (x.var(dim=(2, 3), keepdim=True) + self.eps).sqrt()  # BUG
        return x / torch.maximum(batch, self.slope * x + own) * self.scale + self.shift


def block(inp, out):
    return nn.Sequential(nn.Conv2d(inp, out, 3, stride=2, padding=1), EvolvedNorm(out))


torch.manual_seed(5)
model = nn.Sequential(block(3, 12), block(12, 12), block(12, 12), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                      nn.Linear(12, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for step in range(24):
    size = 8 if step >= 21 else 16  # training ends with smaller pictures
    pictures = torch.rand(16, 3, size, size)
    loss = nn.functional.cross_entropy(model(pictures), (pictures[:, 0].mean(dim=(1, 2)) * 40).long() % 4)  # BUG-ALT
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
