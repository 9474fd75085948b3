"""Training adds a Hessian-vector product to the gradient; a pruned row has norm 0."""
# label: phase=backward mechanism=SING category=N3 category_alt=N2 birth_op=aten::div kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=slope needs= fragile=no
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class SparseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.select = nn.Linear(9, 6, bias=False)
        self.out = nn.Linear(6, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.select(x))).squeeze(1)

    def group_penalty(self):
        return self.select.weight.norm(dim=1).sum()  # BUG


def curvature_along_gradient(loss, params):
    """The gradient, and the Hessian times the gradient."""
    grads = torch.autograd.grad(loss, params, create_graph=True)  # BUG-ALT
    dot = sum((g * g.detach()).sum() for g in grads)
    return grads, torch.autograd.grad(dot, params)


torch.manual_seed(46)
model = SparseNet().to(DEVICE)
params = list(model.parameters())
opt = torch.optim.SGD(params, lr=0.05)
x = torch.randn(32, 9)
y = torch.sin(x[:, 0]) + x[:, 1]
x, y = x.to(DEVICE), y.to(DEVICE)
for step in range(4):
    if step == 2:  # the weakest row is pruned
        with torch.no_grad():
            model.select.weight[model.select.weight.norm(dim=1).argmin()] = 0.0
    loss = F.mse_loss(model(x), y) + 1e-2 * model.group_penalty()
    grads, curvature = curvature_along_gradient(loss, params)
    for param, grad, bend in zip(params, grads, curvature):
        param.grad = grad.detach() + 0.05 * bend
    opt.step()
print(f"sparse net: last loss {loss.item():.4f}")
