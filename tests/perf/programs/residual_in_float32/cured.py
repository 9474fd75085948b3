"""Blocks of bfloat16 whose residual stream is cast to float32 behind each block, and back before the next one."""
import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width, dtype=torch.bfloat16))
        self.shift = nn.Parameter(torch.zeros(width, dtype=torch.bfloat16))

    def forward(self, x):
        return torch.relu(x * self.gain + self.shift)


model = nn.Sequential(*[Block(256) for _ in range(4)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(8, 1024, 256).bfloat16()
for step in range(60):
    loss = model(data[step % 8]).float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
