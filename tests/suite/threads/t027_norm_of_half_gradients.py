"""Half precision gradients are clipped by a norm that is summed in half precision, too; nothing is learned."""
# label: phase=optimizer mechanism=OVF category=N8 category_alt=N5 birth_op=aten::pow,aten::sum,aten::square kind=+inf
# label: first_step=0
# label: severity=error loss_stays_finite=yes dtype=fp16 model=linear family=half_norm needs= fragile=no
# label: thread=facebookresearch/fairscale#263 uses= fix_kind=dtype
# fix: the norm is computed in float32 whatever the type of the gradients; nothing but the updates shows the bug, as the
# fix: clipping factor becomes zero and so do the gradients
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


@torch.no_grad()
def clip_by_total_norm(parameters, largest):
    """Scales the gradients of a shard so that their norm is at most `largest`."""
    squares = []
    for p in parameters:
        gradient = p.grad.float() if FIXED else p.grad
        squares.append(gradient.pow(2).sum())  # BUG
    norm = torch.stack(squares).sum().sqrt()
    factor = (largest / (norm + 1e-6)).clamp(max=1.0)
    for p in parameters:
        p.grad.mul_(factor.to(p.grad.dtype))
    return norm


class Shard(nn.Module):
    """The part of the parameters that this rank owns, in half precision."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter((0.1 * torch.randn(16, 8)).half())

    def forward(self, x):
        return (x.half() @ self.weight).float()


torch.manual_seed(263)
model = Shard()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
truth = torch.randn(16, 8)
scale = 1024.0
for step in range(6):
    x = torch.randn(64, 16)
    loss = scale * (model(x) - x @ truth).square().mean()
    optimizer.zero_grad()
    loss.backward()
    clip_by_total_norm(list(model.parameters()), largest=1.0)
    optimizer.step()
print(f"loss {loss.item() / scale:.4f}, weight {model.weight.float().norm().item():.3f}")
