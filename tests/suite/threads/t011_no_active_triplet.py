"""A triplet loss averages over the triplets that still violate the margin; late in training a batch has none."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N2,N1 birth_op=aten::div kind=nan first_step=
# label: severity=error loss_stays_finite=no dtype=fp32 model=vit family=average_of_active needs= fragile=no
# label: thread=KevinMusgrave/pytorch-metric-learning#107 uses=timm fix_kind=guard
# fix: where no triplet is active the plain mean (zero) is returned instead of a division by their number
import os

import timm
import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class ActiveTripletLoss(nn.Module):
    def __init__(self, margin=0.4):
        super().__init__()
        self.margin = margin

    def forward(self, embedding, label):
        distance = torch.cdist(embedding, embedding)
        same = label[:, None] == label[None]
        other = ~same
        same = same & ~torch.eye(len(label), dtype=torch.bool)
        anchor, positive, negative = (same[:, :, None] & other[:, None, :]).nonzero(as_tuple=True)
        violation = torch.relu(distance[anchor, positive] - distance[anchor, negative] + self.margin)
        active = (violation > 0).sum()
        if FIXED and active == 0:
            return violation.mean()
        return violation.sum() / active  # BUG


def cards(kinds, size=9):
    label = torch.arange(size) % len(kinds)
    return kinds[label] + 0.1 * torch.randn(size, 3, 16, 16), label


torch.manual_seed(107)
kinds = torch.randn(3, 16, 16) + 0.12 * torch.randn(3, 3, 16, 16)
model = timm.create_model("vit_tiny_patch16_224", img_size=16, patch_size=8, embed_dim=24, depth=2, num_heads=2,
                          num_classes=8)
criterion = ActiveTripletLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(150):
    images, label = cards(kinds)
    embedding = nn.functional.normalize(model(images), dim=-1)
    loss = criterion(embedding, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not loss.isfinite():
        break
print(f"triplets: loss {loss.item():.4f}")
