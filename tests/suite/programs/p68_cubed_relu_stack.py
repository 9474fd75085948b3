"""Cubed ReLU in a four-layer network: a louder batch leaves fp32 after three cubes."""
# label: phase=forward mechanism=OVF category=N7 category_alt=N2,N1 birth_op=aten::pow kind=+inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=structure needs= fragile=no
import os

import torch
import torch.nn.functional as F

DEVICE = os.environ.get("DEVICE", "cpu")


def cubed_relu(x):
    return F.relu(x).pow(3)  # BUG


def init(widths):
    """Average weights: every unit starts as the mean of its inputs."""
    return [torch.full((o, i), 1.0 / i).to(DEVICE).requires_grad_() for i, o in
            zip(widths[:-1], widths[1:])]


def network(layers, x):
    for w in layers[:-1]:
        x = cubed_relu(x @ w.t())
    return x @ layers[-1].t()


torch.manual_seed(11)
layers = init([8, 16, 16, 16, 1])
optimizer = torch.optim.SGD(layers, lr=1e-2)
gain = [0.5, 0.8, 1.0, 60.0, 1.0]  # the fourth recording was not divided by the full scale
for g in gain:
    signal = (g * (0.9 + 0.1 * torch.rand(32, 8))).to(DEVICE)
    target = torch.ones(32, 1).to(DEVICE)
    loss = F.l1_loss(network(layers, signal), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("p68 loss", loss.item())
