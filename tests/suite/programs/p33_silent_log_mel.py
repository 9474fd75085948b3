"""A keyword spotter turns clips into log-mel frames; one training clip is digital silence."""
# label: phase=data mechanism=DOM category=N1 category_alt=N2 birth_op=aten::log10 kind=-inf first_step=4
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=data needs= fragile=no
import math
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
FRAME, HOP, MELS = 128, 64, 12


def mel_bank():
    """Triangular filters over the bins of one frame."""
    bins = torch.arange(FRAME // 2 + 1, dtype=torch.float32)
    centres = torch.linspace(2.0, FRAME / 2 - 2.0, MELS)[:, None]
    return (1.0 - (bins - centres).abs() / 6.0).clamp_min(0.0).to(DEVICE)


def log_mel(waves, bank, window):
    frames = waves.unfold(-1, FRAME, HOP) * window
    power = torch.fft.rfft(frames).abs().square()
    decibel = 10.0 * torch.log10(power @ bank.T)  # BUG
    return decibel.transpose(1, 2) / 40.0


class Spotter(nn.Module):
    def __init__(self, words=4):
        super().__init__()
        self.conv = nn.Conv1d(MELS, 16, kernel_size=3, padding=1)
        self.head = nn.Linear(16, words)

    def forward(self, mel):
        return self.head(F.gelu(self.conv(mel)).mean(dim=2))


torch.manual_seed(33)
time = torch.arange(1024) / 1024.0
pitch = 40.0 + 30.0 * torch.arange(4)
clips = torch.sin(2.0 * math.pi * pitch[:, None] * time).repeat(6, 1, 1)
clips = clips + 0.05 * torch.randn_like(clips)
clips[4, 2] = 0.0
bank, window = mel_bank(), torch.hann_window(FRAME).to(DEVICE)
words = torch.arange(4, device=DEVICE)
model = Spotter().to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for batch in clips:
    mel = log_mel(batch.to(DEVICE), bank, window)
    loss = F.cross_entropy(model(mel), words)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"keywords: last loss {loss.item():.4f}")
