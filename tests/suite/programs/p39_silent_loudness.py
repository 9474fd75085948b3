"""A vocoder is trained on the RMS loudness of its output; a muted frame makes it silent."""
# label: phase=backward mechanism=SING category=N3 category_alt=N4 birth_op=aten::div kind=-inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=slope needs= fragile=no
import os

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = os.environ.get("DEVICE", "cpu")


class Vocoder(nn.Module):
    """Control frames in, a waveform out. No biases: no control, no sound."""

    def __init__(self, controls=4):
        super().__init__()
        self.up = nn.ConvTranspose1d(controls, 8, kernel_size=8, stride=4, padding=2, bias=False)
        self.out = nn.Conv1d(8, 1, kernel_size=5, padding=2, bias=False)

    def forward(self, control):
        return torch.tanh(self.out(torch.tanh(self.up(control)))).squeeze(1)


def loudness(wave, hop=32):
    power = F.avg_pool1d(wave.square().unsqueeze(1), hop).squeeze(1)
    return power.sqrt()  # BUG


torch.manual_seed(39)
controls = torch.randn(6, 3, 4, 32)
controls[3, 1] = 0.0
targets = 0.2 + 0.1 * torch.rand(6, 3, 4)
model = Vocoder().to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
history = []
for control, target in zip(controls, targets):
    wave = model(control.to(DEVICE))
    loss = F.mse_loss(loudness(wave), target.to(DEVICE))
    model.zero_grad()
    loss.backward()
    opt.step()
    history.append(round(loss.item(), 4))
print("vocoder losses", history)
