"""A classifier of short recordings, each scaled to unit deviation before it is batched.

The fourth batch holds a recording of a muted microphone: every value is the same, its deviation is exactly 0,
and the scaling divides 0 by 0.
"""
import torch
from torch import nn


def scaled(recordings):
    """Zero mean, unit deviation, each recording by itself."""
    centred = recordings - recordings.mean(1, keepdim=True)
    return centred / recordings.std(1, keepdim=True)  # BUG


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
recordings = torch.randn(6, 12, 16)
recordings[3, 2] = 0.25
labels = torch.randint(0, 2, (6, 12))
for step in range(6):
    loss = nn.functional.cross_entropy(model(scaled(recordings[step])), labels[step])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}")
