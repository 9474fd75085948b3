"""A trunk trained by SGD, and a prototype vector moved by hand along its normalised gradient.

In the fourth batch no sample is active, the prototype's gradient is exactly 0, and the hand-written step
divides it by its own length. The loss of that step is fine.
"""
import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Linear(5, 6)
nn.init.zeros_(trunk.bias)
prototype = nn.Parameter(torch.rand(6))
optimizer = torch.optim.SGD(trunk.parameters(), lr=0.01)
batches = torch.rand(6, 12, 5)
active = torch.ones(6, 12)
active[3] = 0.0
for step, x in enumerate(batches):
    score = trunk(x) @ prototype
    loss = ((score - 1.0).pow(2) * active[step]).mean()
    trunk.zero_grad()
    prototype.grad = None
    loss.backward()
    with torch.no_grad():
        length = prototype.grad.norm()
        direction = prototype.grad / length  # BUG
        prototype -= 0.05 * direction
    optimizer.step()
    print(step, f"{loss.item():.3f}")
