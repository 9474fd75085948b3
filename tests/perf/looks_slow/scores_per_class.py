"""Scores of each class, levels of a pyramid and rows as long as they are: other numbers and sizes in each round."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 24)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
lengths = torch.randint(2, 30, (32,)).tolist()
for step in range(24):
    x, labels = torch.randn(128, 16), torch.randint(0, 24, (128,))
    logits = model(x)
    chosen = logits.detach().argmax(1)
    recall = []
    for number in range(24):
        of_class = labels == number
        recall.append(((chosen == number) & of_class).sum() / of_class.sum().clamp(min=1))
    areas = []
    for number in range(24):
        scores = logits.detach()[:, number]
        hit, miss = scores[labels == number], scores[labels != number]
        areas.append((hit[:, None] > miss).float().mean())
    levels, image = [], torch.rand(1, 1, 64, 64)
    for level in range(5):
        image = F.avg_pool2d(image, 2)
        levels.append(image.mean())
    rows = torch.randn(32, 30)
    means = torch.stack([rows[i, :n].exp().sum().log() for i, n in enumerate(lengths)])
    loss = F.cross_entropy(logits, labels) + 0 * (torch.stack(levels).sum() + means.sum())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.stack(recall).mean() + torch.stack(areas).nanmean()
