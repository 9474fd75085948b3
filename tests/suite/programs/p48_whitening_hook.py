"""A tensor hook whitens the gradient of a shared encoder; a batch without labels sends it zeros."""
# label: phase=backward mechanism=DIV0 category=N3 category_alt=N5,N4 birth_op=aten::div kind=nan first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=multitask family=custom_backward needs= fragile=no
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def whiten(grad):
    """Give every task's gradient the same mean and scale before it enters the encoder."""
    centred = grad - grad.mean(dim=0, keepdim=True)
    spread = centred.square().mean().sqrt()
    return 1e-2 * centred / spread  # BUG


class TwoTasks(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, width), nn.Tanh())
        self.sort = nn.Linear(width, 3)
        self.size = nn.Linear(width, 1)

    def forward(self, x):
        shared = self.encoder(x)
        to_sort, to_size = shared.clone(), shared.clone()
        if shared.requires_grad:
            to_sort.register_hook(whiten)
            to_size.register_hook(whiten)
        return self.sort(to_sort), self.size(to_size).squeeze(1)


def multitask_loss(outputs, sort, size, labelled):
    scores, sizes = outputs
    count = labelled.sum().clamp_min(1.0)
    sort_loss = (F.cross_entropy(scores, sort, reduction="none") * labelled).sum() / count
    return sort_loss + F.mse_loss(sizes, size)


torch.manual_seed(48)
model = TwoTasks().to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
labelled = torch.ones(6, 10)
labelled[1, :4] = 0.0
labelled[3] = 0.0
for step in range(6):
    x = torch.randn(10, 6)
    batch = (x[:, :3].argmax(dim=1), x.sum(dim=1), labelled[step])
    loss = multitask_loss(model(x.to(DEVICE)), *(t.to(DEVICE) for t in batch))
    model.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
print(f"two tasks: last loss {loss.item():.4f}")
