"""A body whose gradients are added up over more steps than numsan looks at before they are used."""
import torch
from torch import nn

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU())
head = nn.Linear(128, 4)
seldom, often = torch.optim.SGD(body.parameters(), lr=0.01), torch.optim.SGD(head.parameters(), lr=0.01)
for step in range(60):
    loss = head(body(torch.randn(128, 128))).square().mean()
    loss.backward()
    often.step()
    often.zero_grad()
    if step % 30 == 29:
        seldom.step()
        seldom.zero_grad()
