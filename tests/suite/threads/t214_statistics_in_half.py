"""A network is cast to half precision with its normalisation; raw detector counts vary by more than half can hold."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N7,N1 birth_op=aten::native_batch_norm,aten::_native_batch_norm_legit,aten::batch_norm kind=+inf first_step=110
# label: severity=error loss_stays_finite=yes dtype=fp16 model=cnn family=half_running_statistics needs= fragile=no
# label: thread=NVIDIA/apex#144 uses=torchvision fix_kind=dtype
# fix: layers with running statistics stay in single precision when the network is cast
import os

import torch
from torch import nn
from torchvision.ops import Conv2dNormActivation

FIXED = os.environ.get("FIXED") == "1"


class Counter(nn.Module):
    """Sees raw counts; the first layer brings them to a common range."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(1)
        self.layers = nn.Sequential(Conv2dNormActivation(1, 8, 3, stride=2), Conv2dNormActivation(8, 8, 3, stride=2),
                                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1))

    def forward(self, counts):
        return self.layers(self.norm(counts))  # BUG


def cast(network):
    network = network.half()
    if FIXED:
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.float()
    return network


def exposures(step, count=8, size=12):
    """Spots on a dark detector, and how many there are; long exposures come last."""
    spots = torch.randint(1, 6, (count,))
    place = torch.rand(count, size * size).argsort(dim=1) < spots[:, None]
    exposure = 200.0 if step < 110 else 15000.0
    return exposure * (place.float() + 0.02 * torch.rand(count, size * size)).view(count, 1, size, size), spots / 5


torch.manual_seed(144)
network = cast(Counter())
copies = [p.detach().float().requires_grad_() for p in network.parameters()]
optimizer = torch.optim.SGD(copies, lr=0.02, momentum=0.9)
for step in range(116):
    counts, spots = exposures(step)
    loss = nn.functional.mse_loss(network(counts.half()).squeeze(1).float(), spots)
    network.zero_grad()
    loss.backward()
    for copy, p in zip(copies, network.parameters()):
        copy.grad = p.grad.float()
    optimizer.step()
    with torch.no_grad():
        for copy, p in zip(copies, network.parameters()):
            p.copy_(copy)
network.eval()
counts, spots = exposures(116, count=64)
with torch.no_grad():
    error = nn.functional.mse_loss(network(counts.half()).squeeze(1).float(), spots)
print(f"loss {loss.item():.4f}, in validation {error.item():.4f}")
