"""A teacher that is the mean of its pupil, and a pupil whose gradients are looked at as they come."""
import torch
from torch import nn

torch.manual_seed(0)


def network():
    return nn.Sequential(*[layer for _ in range(3) for layer in (nn.Linear(64, 64), nn.GELU())], nn.Linear(64, 4))


pupil, teacher = network(), network().requires_grad_(False)
teacher.load_state_dict(pupil.state_dict())
sizes = []
for parameter in pupil.parameters():
    parameter.register_hook(lambda gradient: sizes.append(gradient.abs().mean()))
optimizer = torch.optim.AdamW(pupil.parameters(), lr=1e-3, fused=True)
for step in range(24):
    x = torch.randn(128, 64)
    sizes.clear()
    with torch.no_grad():
        aim = teacher(x + 0.1 * torch.randn(128, 64)).softmax(-1)
    loss = nn.functional.cross_entropy(pupil(x + 0.1 * torch.randn(128, 64)), aim)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(teacher.parameters(), pupil.parameters()):
            kept.lerp_(new, 0.01)
    largest = max(sizes, key=float)
