"""Votes become one-hot shares; an item with only out-of-range labels gives 0 / 0."""
# label: phase=forward mechanism=DIV0 category=N1 category_alt=N4,N2 birth_op=aten::div kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=data needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
CLASSES = 4


def vote_shares(votes):
    """Share of the annotators' votes for every class; votes outside the classes are spilled."""
    counts = torch.zeros(len(votes), CLASSES + 1, device=votes.device)
    slot = torch.where((votes >= 0) & (votes < CLASSES), votes, CLASSES)
    counts.scatter_add_(1, slot, torch.ones_like(slot, dtype=counts.dtype))
    counts = counts[:, :CLASSES]
    return counts / counts.sum(dim=1, keepdim=True)  # BUG


def annotated_batches():
    """Three annotators for each item; 255 is what the tool writes for "skipped"."""
    for batch in range(4):
        votes = torch.randint(0, CLASSES, (16, 3))
        votes[2, 1] = 255
        if batch == 2:
            votes[9] = 255  # nobody wanted to decide
        yield torch.randn(16, 7), votes


torch.manual_seed(27)
classifier = nn.Sequential(
    nn.Linear(7, 20),
    nn.BatchNorm1d(20),
    nn.ReLU(),
    nn.Linear(20, CLASSES),
).to(DEVICE)
opt = torch.optim.SGD(classifier.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

for items, votes in annotated_batches():
    items, votes = items.to(DEVICE), votes.to(DEVICE)
    shares = vote_shares(votes)
    loss = criterion(classifier(items), shares)
    opt.zero_grad()
    loss.backward()
    opt.step()

print("cross entropy with soft labels %.4f" % loss.item())
