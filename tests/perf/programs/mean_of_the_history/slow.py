"""An RNN whose loop shows the mean of all losses so far, which it works out anew from all of them."""
import torch
from torch import nn

torch.manual_seed(0)
gru, out = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*gru.parameters(), *out.parameters()], lr=0.02)
errors = torch.zeros(0)
for step in range(120):
    x = torch.randn(2048, 4, 8)
    error = (out(gru(x)[0][:, -1]).squeeze(-1) - x.mean((1, 2))).square()
    loss = error.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    errors = torch.cat([errors, error.detach()])  # SLOW
    quantile = errors.sort().values[int(0.9 * len(errors))]
print(f"{quantile.item():.3f}")
