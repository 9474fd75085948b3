"""Per-class soft F1 loss; a class nobody has and nobody predicts gives 0 / 0."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N2,N1 birth_op=aten::div kind=nan first_step=1
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=div0 needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
TAGS = 4


def soft_f1_loss(prob, truth):
    """1 - macro F1, with probabilities in the place of decisions."""
    tp = (prob * truth).sum(dim=0)
    fp = (prob * (1 - truth)).sum(dim=0)
    fn = ((1 - prob) * truth).sum(dim=0)
    f1 = 2 * tp / (2 * tp + fp + fn)  # BUG
    return 1 - f1.mean()


def train(model, batches, epochs=2, lr=1e-2):
    opt = torch.optim.SGD(model.parameters(), lr=lr)
    losses = []
    for _ in range(epochs):
        for x, truth in batches:
            opt.zero_grad()
            loss = soft_f1_loss(model(x.to(DEVICE)), truth.to(DEVICE))
            loss.backward()
            opt.step()
            losses.append(loss.item())
    return losses


torch.manual_seed(13)
tagger = nn.Sequential(nn.Linear(10, TAGS, bias=True), nn.Hardsigmoid())  # cheap on a phone
with torch.no_grad():
    tagger[0].weight.mul_(0.1)
    tagger[0].bias.copy_(torch.tensor([0.5, 0.2, 0.0, -8.0]))  # the last tag is rare
tagger.to(DEVICE)

common = torch.tensor([1.0, 0.0, 1.0, 0.0]).repeat(8, 1)
common[::2] = torch.tensor([0.0, 1.0, 0.0, 0.0])
with_rare = common.clone()
with_rare[3, 3] = 1.0
data = [(torch.rand(8, 10), with_rare), (torch.rand(8, 10), common)]

print("f1 losses", ["%.3f" % v for v in train(tagger, data)])
