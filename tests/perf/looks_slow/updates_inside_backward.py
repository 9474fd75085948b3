"""Each parameter is updated as soon as it has its gradient, which is then given up: no op reads it behind the pass."""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(256, 256), nn.ReLU())], nn.Linear(256, 4))
*early, last = model.parameters()
optimizers = {parameter: torch.optim.SGD([parameter], lr=0.01) for parameter in early}


def update(parameter):
    optimizers[parameter].step()
    parameter.grad = None


for parameter in early:
    parameter.register_post_accumulate_grad_hook(update)
optimizer = torch.optim.SGD([last], lr=0.01)
for step in range(24):
    loss = model(torch.randn(64, 256)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
