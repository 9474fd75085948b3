"""The average of the weights that is to be evaluated is kept in bfloat16 and takes a thousandth of every update.

bfloat16 has eight bits: a thousandth of a change is below half of the last one, and the average stays where it began.
"""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 4)
averages = [p.detach().bfloat16() for p in model.parameters()]
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(10):
    x = torch.randn(32, 8)
    loss = nn.functional.mse_loss(model(x), x[:, :4])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for average, p in zip(averages, model.parameters()):
            average.lerp_(p.bfloat16(), 0.001)  # BUG
    print(step, f"{loss.item():.2f}")
