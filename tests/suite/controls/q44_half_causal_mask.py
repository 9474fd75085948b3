"""Causal attention in half whose mask is the type's lowest value, added to the scores."""
# label: tempts=headroom max_severity=none dtype=fp16 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class Causal(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.head = nn.Linear(width, width)

    def forward(self, x):
        past = torch.ones(x.shape[1], x.shape[1], device=x.device).tril().half()
        mask = (1 - past) * torch.finfo(torch.float16).min
        scores = self.query(x).half() @ self.key(x).half().transpose(1, 2) * 0.25
        weights = (scores + mask).float().softmax(-1)
        return self.head(weights @ x)


torch.manual_seed(44)
model = Causal(16).to(DEVICE)
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(8):
    x = torch.randn(8, 10, 16).to(DEVICE)
    target = x.cumsum(1) / torch.arange(1, 11, device=DEVICE)[:, None]
    loss = nn.functional.mse_loss(model(x), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"causal attention in half: loss {loss.item():.3f}")
