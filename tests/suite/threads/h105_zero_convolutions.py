"""A control branch is joined by convolutions of zeros: its output is zero, and at first only they get a gradient."""
# label: tempts=zero-init max_severity=none dtype=fp32 needs= family=control_zero_convolution
# label: thread=https://github.com/lllyasviel/ControlNet/blob/main/docs/faq.md uses=
# why: the gradient of such a convolution's weight is its input, which is not zero; after one step the branch behind it
# why: learns as well
import torch
from torch import nn


def zero(module):
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    return module


class Stage(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))

    def forward(self, x):
        return x + self.net(x)


class Denoiser(nn.Module):
    def __init__(self, width=16, depth=2):
        super().__init__()
        self.inp = nn.Conv2d(1, width, 3, padding=1)
        self.stages = nn.ModuleList(Stage(width) for _ in range(depth))
        self.out = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, controls=None):
        h = self.inp(x)
        for number, stage in enumerate(self.stages):
            h = stage(h)
            if controls is not None:
                h = h + controls[number]
        return self.out(h)


class ControlBranch(nn.Module):
    """A copy of the locked stages that sees the hint."""

    def __init__(self, base, width=16):
        super().__init__()
        self.hint = zero(nn.Conv2d(1, width, 1))
        self.stages = nn.ModuleList(Stage(width) for _ in base.stages)
        self.stages.load_state_dict(base.stages.state_dict())
        self.joints = nn.ModuleList(zero(nn.Conv2d(width, width, 1)) for _ in base.stages)

    def forward(self, h, hint):
        h, controls = h + self.hint(hint), []
        for stage, joint in zip(self.stages, self.joints):
            h = stage(h)
            controls.append(joint(h))
        return controls


torch.manual_seed(105)
base = Denoiser().requires_grad_(False)
branch = ControlBranch(base).requires_grad_(True)
optimizer = torch.optim.AdamW(branch.parameters(), lr=1e-3)
silent = 0
for step in range(40):
    hint = (torch.rand(8, 1, 12, 12) < 0.1).float()
    clean = nn.functional.avg_pool2d(hint, 3, stride=1, padding=1)
    noise = torch.randn_like(clean)
    noisy = 0.8 * clean + 0.6 * noise
    loss = nn.functional.mse_loss(base(noisy, branch(base.inp(noisy), hint)), noise)
    optimizer.zero_grad()
    loss.backward()
    silent += int(branch.stages[0].net[2].weight.grad.abs().max() == 0)
    optimizer.step()
print(f"noise loss {loss.item():.4f}, the copy had no gradient in {silent} step")
