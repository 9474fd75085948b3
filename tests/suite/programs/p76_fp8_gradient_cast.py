"""Linear layer with fp8 backward: the delayed scale is stale when the gradient jumps."""
# label: phase=backward mechanism=OVF category=N8 category_alt=N3 birth_op=aten::_to_copy,aten::copy_ kind=+inf,-inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp8 model=mlp family=fp8 needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
E5M2_MAX = 57344.0


class Fp8Matmul(torch.autograd.Function):
    """Forward in float32, gradient through float8_e5m2 with the scale of the previous step."""

    @staticmethod
    def forward(ctx, x, weight, state):
        ctx.save_for_backward(x, weight)
        ctx.state = state
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        scale = E5M2_MAX / (4 * ctx.state["amax"])
        ctx.state["amax"] = grad.abs().max()
        small = (grad * scale).to(torch.float8_e5m2)  # BUG
        grad = small.to(torch.float32) / scale
        return grad @ weight, grad.t() @ x, None


class Fp8Linear(nn.Linear):
    def __init__(self, *args):
        super().__init__(*args, bias=False)
        self.state = {"amax": torch.tensor(1.0).to(DEVICE)}

    def forward(self, x):
        return Fp8Matmul.apply(x, self.weight, self.state)


torch.manual_seed(19)
layer = Fp8Linear(8, 4).to(DEVICE)
opt = torch.optim.SGD(layer.parameters(), lr=1e-4)
x = torch.randn(16, 8).to(DEVICE)
target = torch.ones(16, 4).to(DEVICE)
for loss_weight in (1.0, 1.0, 1.0, 100.0, 1.0):  # the hard-example stage weighs its loss by 100
    loss = loss_weight * (layer(x) - target).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p76 loss", loss.item())
