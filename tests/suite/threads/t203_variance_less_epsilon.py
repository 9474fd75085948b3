"""A trained backbone is frozen; its checkpoint is taken for an old one, whose variances need a conversion."""
# label: phase=forward mechanism=DIV0 category=N6 category_alt=N7,N2 birth_op=aten::rsqrt kind=+inf first_step=110
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=frozen_variance_conversion needs= fragile=no
# label: thread=facebookresearch/detectron2#2413 uses=torchvision fix_kind=state
# fix: the conversion of checkpoints on loading is removed, variances are taken as they are
import os

import torch
from torch import nn
from torchvision.ops import FrozenBatchNorm2d

FIXED = os.environ.get("FIXED") == "1"


class Backbone(nn.Module):
    """Normalises its four input channels, too: red, green, blue and opacity."""

    def __init__(self, norm):
        super().__init__()
        self.first, self.second = norm(4), norm(12)
        self.convolution = nn.Conv2d(4, 12, 3, stride=2, padding=1)

    def forward(self, picture):
        x = self.first(picture)  # BUG
        return torch.relu(self.second(self.convolution(x)))


def frozen(trained):
    """The same backbone with the normalisation of detectors, filled from a checkpoint."""
    model, state = Backbone(FrozenBatchNorm2d), trained.state_dict()
    for name in state:
        if name.endswith("running_var") and not FIXED:
            state[name] = state[name] - model.first.eps  # BUG-ALT
    model.load_state_dict(state)
    return model.requires_grad_(False)


def pictures(count=8, size=12):
    """Opaque pictures with a bright bar, and in which third it is."""
    picture, third = torch.rand(count, 4, size, size), torch.randint(0, 3, (count,))
    columns = torch.arange(size) // (size // 3)
    picture[:, :3] += (columns == third[:, None])[:, None, None].float()
    picture[:, 3] = 1.0
    return picture, third


def train(model, parameters, steps):
    optimizer = torch.optim.SGD(parameters, lr=0.02, momentum=0.9)
    for _ in range(steps):
        picture, third = pictures()
        loss = nn.functional.cross_entropy(model(picture), third)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return optimizer, loss.item()


torch.manual_seed(2413)
backbone, head = Backbone(lambda channels: nn.BatchNorm2d(channels, momentum=0.3)), nn.Linear(12 * 36, 3)
first, before = train(nn.Sequential(backbone, nn.Flatten(), head), [*backbone.parameters(), *head.parameters()], 110)
new_head = nn.Sequential(nn.Flatten(), nn.Linear(12 * 36, 3))
_, after = train(nn.Sequential(frozen(backbone), new_head), new_head.parameters(), 6)
print(f"loss {before:.4f}, of the new head {after:.4f}")
