"""Progressive stacking of a residual tower without normalisation: fine at 4 blocks, not at 320."""
# label: phase=forward mechanism=OVF category=N7 category_alt=N2,N6 birth_op=aten::addmm,aten::mm,aten::add,aten::linear kind=+inf,-inf,nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=resnet family=structure needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class Tower(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.dim = dim
        self.blocks = nn.ModuleList()
        self.head = nn.Linear(dim, 3)

    def stack(self, depth):
        while len(self.blocks) < depth:
            block = nn.Linear(self.dim, self.dim)
            nn.init.kaiming_normal_(block.weight, nonlinearity="relu")
            nn.init.zeros_(block.bias)
            self.blocks.append(block)
        return self.to(DEVICE)

    def forward(self, x):
        for block in self.blocks:
            x = x + torch.relu(block(x))  # BUG
        return self.head(x)


torch.manual_seed(8)
tower = Tower()
x, labels = torch.randn(8, 16), torch.randint(0, 3, (8,))
x, labels = x.to(DEVICE), labels.to(DEVICE)
for depth in (4, 320):
    tower.stack(depth)
    opt = torch.optim.AdamW(tower.parameters(), lr=1e-3)
    for _ in range(2):
        loss = nn.functional.cross_entropy(tower(x), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
print("p65 loss", loss.item())
