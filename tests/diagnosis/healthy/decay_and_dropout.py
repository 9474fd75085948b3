"""Near to ND120: an ordinary weight decay, and a dropout of half of each layer's outputs."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.5),
                      nn.Linear(128, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.005, weight_decay=0.05)
for step in range(100):
    x = torch.randn(64, 8)
    loss = F.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
