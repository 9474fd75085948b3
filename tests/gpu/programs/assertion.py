"""A finding, then an index out of bounds: the device's context is lost, every later call fails."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(32, 8, device="cuda")
for step in range(5):
    loss = torch.log(model(x).square() - (100.0 if step == 2 else -1.0)).mean()  # BUG
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()
table = torch.zeros(4, device="cuda")
print(table[torch.tensor([1, 1_000_000], device="cuda")].sum().item())
