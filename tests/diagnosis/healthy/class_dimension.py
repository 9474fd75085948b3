"""Near to ND121 and ND103: classes are the second of three dimensions, and log_softmax goes over it."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(4, 32, 3, padding=1), nn.ReLU(), nn.Conv1d(32, 3, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(100):
    x = torch.randn(16, 4, 20)
    loss = F.nll_loss(model(x).log_softmax(dim=1), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
