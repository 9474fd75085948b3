"""Clustering of two views: embeddings are not normalised, and the exponential of score / 0.05 leaves float32."""
# label: phase=forward mechanism=OVF category=N7 category_alt=N2,N4 birth_op=aten::exp kind=+inf first_step=
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=swapped_assignments needs= fragile=no
# label: thread=facebookresearch/swav#67 uses=timm fix_kind=structure
# fix: the embeddings are brought to unit length before they meet the prototypes, so that scores are cosines
import os

import timm
import torch
import torch.nn.functional as F
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
EPSILON, TEMPERATURE = 0.05, 0.1


@torch.no_grad()
def sinkhorn(scores, rounds=3):
    """Soft assignments of a batch in which all prototypes are used alike."""
    q = torch.exp(scores / EPSILON).t()  # BUG
    q = q / q.sum()
    prototypes, samples = q.shape
    for _ in range(rounds):
        q = q / q.sum(dim=1, keepdim=True) / prototypes
        q = q / q.sum(dim=0, keepdim=True) / samples
    return (q * samples).t()


class SwappedPrediction(nn.Module):
    def __init__(self, prototypes=12, features=22):
        super().__init__()
        self.backbone = timm.create_model("test_resnet", pretrained=False, num_classes=0)
        self.project = nn.Sequential(nn.Linear(self.backbone.num_features, 64), nn.ReLU(), nn.Linear(64, features),
                                     nn.BatchNorm1d(features))
        self.prototypes = nn.Linear(features, prototypes, bias=False)

    def scores(self, view):
        z = self.project(self.backbone(view))
        if FIXED:
            z = F.normalize(z, dim=1)
        return self.prototypes(z)

    @torch.no_grad()
    def normalise_prototypes(self):
        self.prototypes.weight.copy_(F.normalize(self.prototypes.weight, dim=1))

    def forward(self, one, other):
        first, second = self.scores(one), self.scores(other)
        q_first, q_second = sinkhorn(first), sinkhorn(second)
        swapped = (q_second * F.log_softmax(first / TEMPERATURE, dim=1)
                   + q_first * F.log_softmax(second / TEMPERATURE, dim=1))
        return -swapped.sum(dim=1).mean()


def two_views(count=16):
    image = F.interpolate(torch.randn(count, 3, 4, 4), size=32)
    return image + 0.1 * torch.randn_like(image), image.flip(-1) + 0.1 * torch.randn_like(image)


torch.manual_seed(116)
model = SwappedPrediction()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for step in range(60):
    model.normalise_prototypes()
    loss = model(*two_views())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"swapped loss {loss.item():.4f}")
