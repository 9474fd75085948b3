"""The custom function of victim.py with the divisor kept away from zero in its backward."""
import torch
from torch import nn


class Length(torch.autograd.Function):
    """Euclidean length of each row."""

    @staticmethod
    def forward(ctx, x):
        length = x.pow(2).sum(1, keepdim=True).sqrt()
        ctx.save_for_backward(x, length)
        return length

    @staticmethod
    def backward(ctx, gradient):
        x, length = ctx.saved_tensors
        direction = x / length.clamp(min=1e-6)
        return gradient * direction


torch.manual_seed(0)
model = nn.Linear(4, 4, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = torch.randn(5, 16, 4)
batches[2, 11] = 0.0
for step, x in enumerate(batches):
    loss = (Length.apply(model(x)) - 1.0).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}")
