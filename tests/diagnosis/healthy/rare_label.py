"""Near to ND116: one label of 300 is 1, so that some batches have none."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
for step in range(100):
    x = torch.randn(256, 8)
    y = (x[:, :1] > 2.71).float()
    loss = F.binary_cross_entropy_with_logits(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
