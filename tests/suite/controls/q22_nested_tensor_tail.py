"""Ragged clips as a nested tensor; the padded tail is minus infinity and never the maximum."""
# label: tempts=padding max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class ClipClassifier(nn.Module):
    def __init__(self, width_in, classes):
        super().__init__()
        self.frame = nn.Sequential(nn.Linear(width_in, 32), nn.ReLU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, classes)

    def forward(self, clips):
        ragged = torch.nested.as_nested_tensor([self.frame(clip) for clip in clips])
        padded = torch.nested.to_padded_tensor(ragged, float("-inf"))
        return self.head(padded.amax(dim=1))


def make_batch():
    lengths = torch.randint(1, 10, (8,)).tolist()
    clips = [torch.randn(length, 5).to(DEVICE) for length in lengths]
    return clips, torch.tensor([length > 4 for length in lengths]).long().to(DEVICE)


torch.manual_seed(22)
model = ClipClassifier(5, 2).to(DEVICE)
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(6):
    clips, label = make_batch()
    loss = nn.functional.cross_entropy(model(clips), label)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"nested clips: loss {loss.item():.3f}")
