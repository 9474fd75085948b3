"""An independence penalty sets its kernel's width to the median distance; most of a batch has the same group label."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N1,N2,N5 birth_op=aten::reciprocal,aten::div kind=+inf
# label: first_step=23
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=kernel_width needs= fragile=no
# label: thread=neurodata/hyppo#93 uses= fix_kind=guard
# fix: where the median is zero the kernel's precision is set to a fixed value instead of its reciprocal
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def gaussian_gram(x):
    """A Gaussian kernel whose width is the median of the distances."""
    distance = torch.cdist(x, x)
    median = distance.detach().flatten().median()
    if FIXED and median == 0:
        precision = torch.ones(())
    else:
        precision = 1.0 / (2 * median**2)  # BUG
    return torch.exp(-precision * distance.square())


def dependence(a, b):
    """The biased estimate of the Hilbert-Schmidt independence criterion."""
    count = len(a)
    centre = torch.eye(count) - 1.0 / count
    return (centre @ gaussian_gram(a) @ centre * gaussian_gram(b)).sum() / count**2


class FairScorer(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 24), nn.ReLU(), nn.Linear(24, 8))
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        code = self.body(x)
        return code, self.head(code).squeeze(-1)


def applicants(step, size=40):
    group = torch.arange(size) % 4
    if step == 23:
        group[: size - 2] = 0  # a branch office with hardly anyone of the other groups
    group = nn.functional.one_hot(group, 4).float()
    return torch.randn(size, 10) + 0.5 * group[:, :1], group


torch.manual_seed(92)
scorer = FairScorer(10)
optimizer = torch.optim.Adam(scorer.parameters(), lr=2e-3)
for step in range(25):
    x, group = applicants(step)
    code, score = scorer(x)
    loss = nn.functional.binary_cross_entropy_with_logits(score, (x[:, 0] > 0).float()) + dependence(code, group)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss with penalty {loss.item():.4f}")
