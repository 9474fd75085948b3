"""A robot policy normalises images by statistics of its dataset: computed on bytes, whose squares wrap around."""
# label: phase=data mechanism=OVF category=N8 category_alt=N1,N2 birth_op=aten::div,aten::sqrt kind=+inf,-inf,nan first_step=21
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=byte_statistics needs= fragile=no
# label: thread=huggingface/lerobot#3697 uses= fix_kind=dtype
# fix: batches are converted to floating point before means and means of squares are taken; the division by the
# fix: deviation is where the wrapped number first shows
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class RunningStatistics:
    """Mean and deviation per channel over all episodes seen."""

    def __init__(self):
        self.count, self.total, self.squares = 0, 0.0, 0.0

    def update(self, frames):
        if FIXED:
            frames = frames.float()
        channels = frames.transpose(0, 1).flatten(1)
        self.count += channels.shape[1]
        self.total = self.total + channels.sum(dim=1)
        self.squares = self.squares + (channels * channels).sum(dim=1)  # BUG-ALT

    def deviation(self):
        mean = self.total / self.count
        return (self.squares / self.count - mean * mean).clamp(min=0).sqrt()

    def normalise(self, frames):
        mean = (self.total / self.count).view(1, -1, 1, 1)
        return (frames.float() - mean) / self.deviation().view(1, -1, 1, 1)  # BUG


class Policy(nn.Module):
    def __init__(self, actions=2):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 12, 5, stride=2), nn.ReLU(), nn.Conv2d(12, 16, 3, stride=2), nn.ReLU(),
                                  nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 32), nn.ReLU())
        self.action = nn.Linear(32, actions)

    def forward(self, image):
        return self.action(self.body(image))


def episode(brightness, frames=12, size=24):
    """Frames as bytes and what the hand did: it follows the lamp."""
    position = torch.rand(frames, 2) * 2 - 1
    grid = torch.linspace(-1, 1, size)
    distance = (grid[None, :, None] - position[:, :1, None]) ** 2 + (grid[None, None] - position[:, 1:, None]) ** 2
    glow = torch.exp(-4 * distance)[:, None] * brightness * torch.tensor([1.0, 0.9, 0.8]).view(1, 3, 1, 1)
    return (glow + torch.rand(frames, 3, size, size) * 3).to(torch.uint8), position


torch.manual_seed(122)
policy, statistics = Policy(), RunningStatistics()
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
for step in range(30):
    if step == 21:
        statistics = RunningStatistics()  # the second workshop has lights on, and statistics of its own
    frames, action = episode(brightness=9 if step < 21 else 180)
    statistics.update(frames)
    loss = nn.functional.l1_loss(policy(statistics.normalise(frames)), action)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"imitation loss {loss.item():.4f}")
