"""Four-bit weights with an fp8 scale per block: an empty block has scale 1, which no longer fits when rescaled."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N2,N7 birth_op=aten::_to_copy,aten::copy_,aten::to kind=nan first_step=26
# label: severity=error loss_stays_finite=no dtype=fp8 model=mlp family=quantiser_fp8_block_scale needs= fragile=no
# label: thread=NVIDIA/Model-Optimizer#1397 uses= fix_kind=clamp
# fix: the rescaled block scale is cut to 448, the largest number of float8_e4m3fn, before the cast
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
BLOCK, FP4_MAX, FP8_MAX = 16, 6.0, 448.0
LEVELS = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


class BlockQuantiser(torch.autograd.Function):
    """Rounds weights to fp4 levels times an fp8 block scale times a float32 tensor scale; straight through."""

    @staticmethod
    def forward(ctx, weight):
        blocks = weight.reshape(-1, BLOCK)
        tensor_scale = blocks.abs().max() / (FP4_MAX * FP8_MAX)
        block_scale = blocks.abs().amax(dim=1, keepdim=True) / FP4_MAX
        block_scale[block_scale == 0] = 1.0  # never divide by zero
        stored = block_scale / tensor_scale
        if FIXED:
            stored = stored.clamp(max=FP8_MAX)
        stored = stored.to(torch.float8_e4m3fn)  # BUG
        scale = stored.float() * tensor_scale
        distance = (blocks.abs() / scale).unsqueeze(-1) - LEVELS
        rounded = LEVELS[distance.abs().argmin(dim=-1)] * blocks.sign()
        return (rounded * scale).reshape(weight.shape)

    @staticmethod
    def backward(ctx, grad):
        return grad


class QuantLinear(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(x, BlockQuantiser.apply(self.weight), self.bias)


class Experts(nn.Module):
    """Two experts share the work; in the second run one input of them was removed."""

    def __init__(self, width=32):
        super().__init__()
        self.router = nn.Linear(width, 2)
        self.experts = nn.ModuleList(QuantLinear(width, width) for _ in range(2))
        self.head = QuantLinear(width, 4)

    def forward(self, x):
        share = self.router(x).softmax(dim=1)
        mixed = sum(share[:, i:i + 1] * torch.relu(expert(x)) for i, expert in enumerate(self.experts))
        return self.head(mixed)


torch.manual_seed(120)
model = Experts()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
teacher = torch.randn(32, 4)
for step in range(34):
    if step == 26:
        with torch.no_grad():
            model.experts[1].weight[5] = 0.0  # a unit is given up
    x = torch.randn(64, 32)
    loss = nn.functional.cross_entropy(model(x), (x @ teacher).argmax(dim=1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss with four bits {loss.item():.4f}")
