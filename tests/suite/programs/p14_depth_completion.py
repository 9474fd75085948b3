"""Depth completion, loss over valid pixels; one frame has none and the mean is empty."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N1 birth_op=aten::mean kind=nan first_step=4
# label: severity=error loss_stays_finite=no dtype=fp32 model=conv family=div0 needs= fragile=no
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DEVICE = os.environ.get("DEVICE", "cpu")


class LidarFrames(Dataset):
    """Image and sparse depth; depth 0 means that the beam did not return."""

    def __init__(self, frames=6):
        generator = torch.Generator().manual_seed(14)
        self.images = torch.rand(frames, 3, 10, 10, generator=generator)
        self.depth = 1 + torch.rand(frames, 1, 10, 10, generator=generator)
        self.depth[:, :, ::2] = 0.0
        self.depth[4] = 0.0  # thick fog

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.depth[index]


def masked_mse(pred, depth):
    valid = depth > 0
    squared = (pred[valid] - depth[valid]) ** 2
    return squared.mean()  # BUG


torch.manual_seed(14)
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ELU(), nn.Conv2d(8, 1, 3, padding=1))
net.to(DEVICE)
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
epoch_loss = torch.zeros(()).to(DEVICE)

for image, depth in DataLoader(LidarFrames(), batch_size=1, shuffle=False):
    image, depth = image.to(DEVICE), depth.to(DEVICE)
    loss = masked_mse(net(image), depth)
    opt.zero_grad()
    loss.backward()
    opt.step()
    epoch_loss += loss.detach()

print("depth loss of the epoch %.4f" % epoch_loss.item())
