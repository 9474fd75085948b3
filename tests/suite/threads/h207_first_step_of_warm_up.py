"""A warm-up from zero: the first step of a pretraining moves no weight at all."""
# label: tempts=no-update max_severity=none dtype=fp32 needs= family=warm_up_from_zero
# label: thread=facebookresearch/barlowtwins#45 uses=transformers
# why: the first rates of any warm-up are next to nothing, and statistics of the normalisation are collected all the
# why: same, says the author
import torch
from torch import nn
from transformers import get_cosine_schedule_with_warmup


def encoder(width=32):
    return nn.Sequential(nn.Linear(10, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 8))


def redundancy_loss(a, b):
    """Correlations of two views: ones on the diagonal, zeros beside it."""
    a, b = ((h - h.mean(dim=0)) / (h.std(dim=0) + 1e-5) for h in (a, b))
    off = a.T @ b / len(a) - torch.eye(a.shape[1])
    return off.diagonal().square().sum() + 0.005 * (off - off.diagonal().diag()).square().sum()


torch.manual_seed(45)
model = encoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-4)
schedule = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=10, num_training_steps=60)
before, moved = model[0].weight.detach().clone(), []
for step in range(60):
    x = torch.randn(64, 10)
    loss = redundancy_loss(*(model(x + 0.3 * torch.randn_like(x)) for _ in range(2)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    moved.append((model[0].weight.detach() - before).norm().item())
print(f"loss {loss.item():.4f}, weights moved by {moved[0]:.3f} and, in all, {moved[-1]:.3f}")
