"""CTC with a transcript longer than its audio: zero_infinity takes the infinite loss out."""
# label: tempts=ctc max_severity=none dtype=fp32 needs=
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
FRAMES, BATCH, LETTERS = 10, 4, 8


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(13, 32, 3, padding=1)
        self.head = nn.Linear(32, LETTERS)

    def forward(self, audio):
        hidden = F.relu(self.conv(audio)).permute(2, 0, 1)
        return self.head(hidden).log_softmax(-1)


torch.manual_seed(11)
model = Recognizer().to(DEVICE)
criterion = nn.CTCLoss(blank=0, zero_infinity=True)
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(5):
    audio = torch.randn(BATCH, 13, FRAMES).to(DEVICE)
    targets = torch.randint(1, LETTERS, (BATCH, 12)).to(DEVICE)
    frames = torch.full((BATCH,), FRAMES)
    letters = torch.tensor([3, 4, 2, 12 if step == 2 else 3])  # 12 letters in 10 frames
    loss = criterion(model(audio), targets, frames, letters)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"ctc: loss {loss.item():.3f}")
