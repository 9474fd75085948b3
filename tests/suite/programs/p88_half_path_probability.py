"""The probability of a path is a product of transition probabilities in half: twelve steps are below the type."""
# label: phase=forward mechanism=UDF category=N8 category_alt=N4,N7,N2 birth_op=aten::mul kind=zero first_step=2
# label: severity=warning loss_stays_finite=yes dtype=fp16 model=rnn family=underflow needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class Path(nn.Module):
    def __init__(self):
        super().__init__()
        self.move = nn.Linear(5, 1)

    def forward(self, places):
        chance = torch.sigmoid(self.move(places)).squeeze(-1).half()
        path = chance[:, 0]
        for hop in range(1, chance.shape[1]):
            path = path * chance[:, hop]  # BUG
        return path.float()


torch.manual_seed(88)
model = Path().to(DEVICE)
nn.init.constant_(model.move.bias, -2.0)  # one move in nine
opt = torch.optim.SGD(model.parameters(), lr=0.1)
norms = []
for step in range(9):
    hops = 2 if step < 2 else 12
    places = 0.1 * torch.randn(16, hops, 5)
    seen = torch.rand(16) < 0.1
    path = model(places.to(DEVICE))
    loss = (path - seen.float().to(DEVICE)).square().sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    norms.append(model.move.weight.grad.abs().sum().item())
print("p88 gradient sums", " ".join(f"{n:.2g}" for n in norms))
