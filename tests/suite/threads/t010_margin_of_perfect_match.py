"""An additive angular margin after one-shot imprinting: a face meets its own embedding, its cosine rounds above one."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2,N3 birth_op=aten::sqrt kind=nan first_step=21
# label: severity=error loss_stays_finite=no dtype=fp32 model=resnet family=angular_margin needs= fragile=no
# label: thread=ronghuaiyang/arcface-pytorch#32 uses=torchvision fix_kind=clamp
# fix: 1 - cos^2 is clamped to a small positive number before the root is taken; the margin belongs to the loss
import math
import os

import torch
from torch import nn
from torchvision.models import resnet18

FIXED = os.environ.get("FIXED") == "1"


class AngularMargin(nn.Module):
    def __init__(self, features, classes, scale=16.0, margin=0.3):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, features))
        self.scale, self.cos_m, self.sin_m = scale, math.cos(margin), math.sin(margin)

    @torch.no_grad()
    def imprint(self, embedding):
        self.weight.copy_(embedding)

    def forward(self, embedding, label):
        cosine = nn.functional.normalize(embedding) @ nn.functional.normalize(self.weight).T
        square = 1.0 - cosine.square()
        sine = (square.clamp_min(1e-6) if FIXED else square).sqrt()  # BUG
        shifted = cosine * self.cos_m - sine * self.sin_m
        hot = nn.functional.one_hot(label, len(self.weight)).bool()
        return nn.functional.cross_entropy(self.scale * torch.where(hot, shifted, cosine), label)


torch.manual_seed(32)
gallery = torch.randn(20, 3, 32, 32)  # one picture a person
backbone = resnet18(num_classes=24, norm_layer=lambda channels: nn.GroupNorm(4, channels))
criterion = AngularMargin(24, 20)
optimizer = torch.optim.SGD([*backbone.parameters(), *criterion.parameters()], lr=0.01, momentum=0.9)
for step in range(22):
    if step < 21:
        label = torch.randint(0, 20, (6,))
    else:
        criterion.imprint(torch.cat([backbone(part) for part in gallery.split(10)]))
        label = torch.arange(10)
    loss = criterion(backbone(gallery[label]), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"margin loss {loss.item():.4f}")
