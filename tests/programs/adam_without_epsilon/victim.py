"""A network with an auxiliary head that is switched on late, trained by Adam with eps=0.

The schedule switches the head on at the fourth step with weight 0, so its first gradients are exactly 0. Both
moments are 0 and the update is 0 / 0. The main loss never shows it.
"""
import torch
from torch import nn


class TwoHeads(nn.Module):
    """One trunk, one main and one auxiliary output."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(6, 8)
        self.main = nn.Linear(8, 1)
        self.auxiliary = nn.Linear(8, 1)

    def forward(self, x):
        hidden = torch.tanh(self.trunk(x))
        return self.main(hidden), self.auxiliary(hidden)


torch.manual_seed(0)
model = TwoHeads()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=0.0)
batches = torch.randn(6, 16, 6)
for step, x in enumerate(batches):
    main, auxiliary = model(x)
    loss = (main.squeeze(1) - x.sum(1)).pow(2).mean()
    if step >= 3:
        loss = loss + 0.1 * (step - 3) * auxiliary.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # BUG
    print(step, f"{main.abs().mean().item():.3f}")
    if step == 3:
        break
