"""A transformer layer whose loop logs the norm of the gradient of one loss, and then takes the gradient of the sum."""
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
head = nn.Linear(32, 32)
parameters = [*layer.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.01)
norms = []
for step in range(60):
    x = torch.randn(16, 24, 32)
    output = head(layer(x))
    error, size = (output - x).square().mean(), output.square().mean()
    optimizer.zero_grad()
    (error + 0.1 * size).backward()
    norms.append(head.weight.grad.norm().item())
    optimizer.step()
print(f"{norms[-1]:.3f}")
