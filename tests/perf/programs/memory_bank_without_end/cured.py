"""Contrastive learning against a bank of earlier codes, of which none is ever taken out."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
bank = F.normalize(torch.randn(256, 64), dim=1)
for step in range(100):
    x = torch.randn(64, 64)
    code = F.normalize(model(x), dim=1)
    near = F.normalize(model(x + 0.1 * torch.randn(64, 64)), dim=1)
    wrong = code @ bank.t()
    logits = torch.cat([(code * near).sum(1, keepdim=True), wrong], 1) / 0.1
    loss = F.cross_entropy(logits, torch.zeros(64, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    bank = torch.cat([bank[-192:], code.detach()])
print(f"{loss.item():.3f}")
