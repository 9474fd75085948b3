"""Item recommender: a beta2 schedule written into Adam's param group ends at exactly 1."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt= birth_op=aten::div,aten::_foreach_div_ kind=nan,+inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=embedding family=optimizer_eps needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
SCHEDULE_STEPS = 3


class Recommender(nn.Module):
    def __init__(self, items=40, dim=8):
        super().__init__()
        self.items = nn.Embedding(items, dim)
        self.head = nn.Linear(dim, 1)

    def forward(self, basket):
        return self.head(self.items(basket).mean(1)).squeeze(-1)


def set_beta2(opt, step):
    """Linear schedule 0.9 -> 1.0; the constructor would have refused 1.0."""
    beta2 = 0.9 + 0.1 * min(step, SCHEDULE_STEPS) / SCHEDULE_STEPS
    for group in opt.param_groups:
        group["betas"] = (group["betas"][0], beta2)


torch.manual_seed(0)
model = Recommender().to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.9))
baskets = torch.randint(0, 20, (5, 16, 4))
baskets[4] += 20  # the last batch is the first to show the second half of the catalogue
bought = (torch.rand(5, 16) > 0.5).float()
for step in range(5):
    set_beta2(opt, step)
    logits = model(baskets[step].to(DEVICE))
    loss = nn.functional.binary_cross_entropy_with_logits(logits, bought[step].to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()  # BUG
print("p57 loss", loss.item())
