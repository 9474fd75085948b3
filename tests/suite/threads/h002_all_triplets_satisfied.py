"""Fine-tuning with a triplet loss and a miner: the loss is exactly zero most of the time, and so are the gradients."""
# label: tempts=zero_loss max_severity=none dtype=fp32 needs= family=zero_triplet_loss
# label: thread=KevinMusgrave/pytorch-metric-learning#268 uses=torchvision
# why: once all triplets of a batch satisfy the margin the loss is zero by definition; the maintainer calls it normal
import torch
from torch import nn
from torchvision.models import squeezenet1_1


def mined(distance, label, margin):
    same = (label[:, None] == label[None]).fill_diagonal_(False)
    anchor, positive, negative = (same[:, :, None] & (label[:, None] != label[None])[:, None, :]).nonzero(as_tuple=True)
    gap = distance[anchor, negative] - distance[anchor, positive]
    hard = gap < margin
    return distance[anchor[hard], positive[hard]], distance[anchor[hard], negative[hard]]


torch.manual_seed(268)
backbone = squeezenet1_1(num_classes=8)
kinds = torch.randn(3, 3, 48, 48)
optimizer = torch.optim.Adam(backbone.parameters(), lr=1e-3)
zeros = 0
for step in range(24):
    label = torch.arange(9) % 3
    embedding = backbone(kinds[label] + 0.05 * torch.randn(9, 3, 48, 48))
    near, far = mined(torch.cdist(embedding, embedding), label, margin=0.05)
    loss = torch.relu(near - far + 0.05).sum() / max(len(near), 1)
    zeros += loss.item() == 0
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{zeros} of 24 batches have nothing left to learn")
