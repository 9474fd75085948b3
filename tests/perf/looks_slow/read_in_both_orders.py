"""A copy with channels last that a norm and a product of its own rows read: the copy is of use, whatever follows."""
import torch
from torch import nn

torch.manual_seed(0)


class Gram(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        last = (x * 1.5).permute(0, 2, 1).contiguous()
        similar = torch.bmm(last, last.transpose(1, 2)).mean((1, 2), keepdim=True)
        scaled = torch.relu(self.norm(last))
        return x + similar.tanh() * scaled.permute(0, 2, 1).contiguous()


model = nn.Sequential(Gram(48), Gram(48))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(24):
    x = torch.randn(32, 48, 96)
    loss = (model(x) - x.roll(1, 0)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
