"""A pitch tracker standardises each frame of audio by itself; a pause in the recording has no deviation."""
# label: phase=data mechanism=DIV0 category=N2 category_alt=N1 birth_op=aten::div kind=nan first_step=22
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=speech_silent_frames needs= fragile=no
# label: thread=maxrmorrison/torchcrepe#5 uses= fix_kind=clamp
# fix: the deviation of a frame is clipped from below before the division; silence is legal audio, so the formula is to
# fix: blame (N2), which is part of the preprocessing (N1)
import math
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
RATE, WINDOW, HOP = 4000, 256, 128


def frames_of(audio):
    """Overlapping windows, each with zero mean and unit deviation."""
    frames = audio.unfold(0, WINDOW, HOP)
    frames = frames - frames.mean(dim=1, keepdim=True)
    spread = frames.std(dim=1, keepdim=True)
    if FIXED:
        spread = spread.clamp(min=1e-10)
    return frames / spread  # BUG


class PitchNet(nn.Module):
    def __init__(self, bins=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, 16, 32, stride=4), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(16, 32, 8, stride=2), nn.ReLU(), nn.AdaptiveAvgPool1d(4))
        self.head = nn.Linear(128, bins)

    def forward(self, frames):
        return self.head(self.body(frames[:, None]).flatten(1))


def take(number):
    """Half a second of one sung note and its bin; take 22 begins with the studio's muted microphone."""
    note = number * 7 % 24
    time = torch.arange(RATE // 2) / RATE
    audio = 0.4 * torch.sin(2 * math.pi * 110 * 2 ** (note / 12) * time) + 0.02 * torch.randn(len(time))
    if number == 22:
        audio[:600] = 0.0
    return audio, note


torch.manual_seed(106)
model = PitchNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for number in range(32):
    audio, note = take(number)
    frames = frames_of(audio)
    loss = nn.functional.cross_entropy(model(frames), torch.full((len(frames),), note))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"pitch loss {loss.item():.3f}")
