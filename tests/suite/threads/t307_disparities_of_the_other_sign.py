"""Stereo pairs from two sets of scenes; one stores disparities with a minus sign, and no pixel of it is valid."""
# label: phase=forward mechanism=DIV0 category=N1 category_alt=N4 birth_op=aten::smooth_l1_loss,aten::mean kind=nan
# label: first_step=20
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=disparity_sign needs= fragile=no
# label: thread=mli0603/stereo-transformer#11 uses= fix_kind=data
# fix: the reader of that set turns the sign of its disparities
import os

import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset

FIXED = os.environ.get("FIXED") == "1"


class Scenes(Dataset):
    """Pairs of views; the right one is the left one moved by the disparity."""

    def __init__(self, count, sign, seed):
        self.random = torch.Generator().manual_seed(seed)
        self.count, self.sign = count, sign

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        left, shift = torch.rand(1, 8, 24, generator=self.random), 1 + index % 4
        stored = self.sign * torch.full((8, 24), float(shift))
        if FIXED:
            stored = stored * self.sign
        return left, left.roll(-shift, dims=-1), stored  # BUG-ALT


class Matcher(nn.Module):
    def __init__(self, width=12, largest=6):
        super().__init__()
        self.features, self.largest = nn.Conv2d(1, width, 3, padding=1), largest

    def forward(self, left, right):
        a, b = self.features(left), self.features(right)
        cost = torch.stack([(a * b.roll(shift, dims=-1)).mean(dim=1) for shift in range(self.largest)], dim=-1)
        return (cost.softmax(dim=-1) * torch.arange(self.largest)).sum(dim=-1)


torch.manual_seed(11)
matcher = Matcher()
optimizer = torch.optim.AdamW(matcher.parameters(), lr=1e-2)
loader = DataLoader(ConcatDataset([Scenes(80, 1, 1), Scenes(16, -1, 2)]), batch_size=4)
for left, right, disparity in loader:
    found = matcher(left, right)
    valid = disparity > 0
    loss = nn.functional.smooth_l1_loss(found[valid], disparity[valid])  # BUG
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
