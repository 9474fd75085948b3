"""Near to ND113 and ND114: a predictor learns what a network says that is random by design, and is detached."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
target = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 8))
frozen = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).requires_grad_(False)
predictor = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 8))
optimizer = torch.optim.Adam(predictor.parameters(), lr=1e-2)
for step in range(100):
    x = torch.randn(128, 16)
    loss = F.mse_loss(predictor(x), target(x).detach() + frozen(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
