"""Contrastive pre-training of two towers: the learned scale of the logits grows from 14 towards its limit of 100."""
# label: tempts=growth max_severity=none dtype=fp32 needs= family=contrastive_logit_scale
# label: thread=mlfoundations/open_clip#214 uses=timm
# why: the maintainer's answer was that it is expected and that it stops at 100, where the parameter is clamped
import math

import timm
import torch
import torch.nn.functional as F
from torch import nn


class TwoTowers(nn.Module):
    def __init__(self, words=16, width=32):
        super().__init__()
        self.image = timm.create_model("test_resnet", pretrained=False, num_classes=width)
        self.text = nn.Sequential(nn.Embedding(words, width), nn.Flatten(), nn.Linear(4 * width, width))
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, image, text):
        image, text = F.normalize(self.image(image), dim=1), F.normalize(self.text(text), dim=1)
        logits = self.logit_scale.exp() * image @ text.t()
        pairs = torch.arange(len(logits))
        return (F.cross_entropy(logits, pairs) + F.cross_entropy(logits.t(), pairs)) / 2


def captioned(count=24):
    """Four patches of sixteen shades, and their names."""
    names = torch.randint(0, 16, (count, 4))
    shades = (names.float() / 8 - 1).view(count, 1, 2, 2).expand(-1, 3, -1, -1)
    return F.interpolate(shades, size=32) + 0.05 * torch.randn(count, 3, 32, 32), names


torch.manual_seed(104)
model = TwoTowers()
scale = [model.logit_scale]
optimizer = torch.optim.AdamW([{"params": [p for p in model.parameters() if p is not model.logit_scale], "lr": 3e-3},
                               {"params": scale, "lr": 5e-2, "weight_decay": 0.0}])
for step in range(60):
    loss = model(*captioned())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        model.logit_scale.clamp_(0, math.log(100))
print(f"contrastive loss {loss.item():.3f}, scale {model.logit_scale.exp().item():.1f}")
