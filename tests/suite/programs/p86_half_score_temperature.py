"""Scores in half are divided by a large temperature; on the way back their gradients are all below the type."""
# label: phase=backward mechanism=UDF category=N8 category_alt=N5,N3 birth_op=aten::div kind=zero first_step=2
# label: severity=warning loss_stays_finite=yes dtype=fp16 model=mlp family=underflow needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(6, 16)
        self.rank = nn.Linear(16, 3)

    def forward(self, x, temperature):
        scores = self.rank(torch.tanh(self.embed(x))).half()
        return scores / temperature  # BUG


torch.manual_seed(86)
model = Ranker().to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
norms = []
for step in range(6):
    temperature = 1.0 if step < 2 else 60000.0  # annealed the wrong way round
    x = torch.randn(1024, 6)
    label = x[:, :3].argmax(1)
    logits = model(x.to(DEVICE), temperature).float()
    loss = nn.functional.cross_entropy(logits, label.to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
    norms.append(sum(p.grad.abs().sum().item() for p in model.parameters()))
print("p86 gradient sums", " ".join(f"{n:.3g}" for n in norms))
