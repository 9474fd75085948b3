"""The pooling of victim.py with a mean, which divides before it can be large."""
import torch
from torch import nn


class Pool(nn.Module):
    """One vector a document; the tokens are kept in half to save memory."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(2, 8)
        self.head = nn.Linear(8, 1)
        nn.init.constant_(self.embed.weight, 0.4)

    def forward(self, x):
        tokens = torch.relu(self.embed(x)).half()
        pooled = tokens.mean(1)
        return self.head(pooled.float())


torch.manual_seed(0)
model = Pool()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
for step in range(6):
    x = 105 + 15 * torch.rand(4, 500, 2)
    loss = nn.functional.l1_loss(model(x).squeeze(1), x.mean((1, 2)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.2f}")
