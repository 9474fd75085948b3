"""Gradients of four batches for one update, and a second optimizer that steps in every third round only."""
import torch
from torch import nn

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU())
head = nn.Linear(128, 4)
seldom, often = torch.optim.SGD(body.parameters(), lr=0.01), torch.optim.SGD(head.parameters(), lr=0.01)
for step in range(30):
    for batch in range(4):
        loss = head(body(torch.randn(64, 128))).square().mean() / 4
        loss.backward()
    often.step()
    often.zero_grad()
    if step % 3 == 2:
        seldom.step()
        seldom.zero_grad()
