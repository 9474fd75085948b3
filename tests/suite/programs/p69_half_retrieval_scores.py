"""Two-tower retrieval in fp16: the dot of two long embeddings passes 65504."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N7,N2 birth_op=aten::mm,aten::matmul kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp16 model=two_tower family=half needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
DIM = 2048


class TwoTower(nn.Module):
    def __init__(self, users, items):
        super().__init__()
        self.user = nn.Embedding(users, DIM)
        self.item = nn.Embedding(items, DIM)
        with torch.no_grad():
            self.user.weight.mul_(0.05)
            self.item.weight.mul_(0.05)
            self.user.weight[3] = 6.0  # heavy users end with large, aligned vectors
            self.item.weight[5] = 6.0

    def forward(self, users, items):
        return self.user(users) @ self.item(items).t()  # BUG


torch.manual_seed(12)
model = TwoTower(10, 12).half().to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
batches = [
    ([0, 1, 2], [0, 1, 2]), ([1, 3, 4], [4, 2, 6]), ([3, 6, 7], [5, 7, 8]), ([0, 8, 9], [1, 2, 3])
]
for user_ids, item_ids in batches:
    users = torch.tensor(user_ids).to(DEVICE)
    items = torch.tensor(item_ids).to(DEVICE)
    scores = model(users, items)
    target = torch.arange(len(user_ids)).to(DEVICE)
    loss = nn.functional.cross_entropy(scores.float(), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p69 loss", loss.item())
