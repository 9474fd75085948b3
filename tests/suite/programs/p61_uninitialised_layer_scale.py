"""A layer added during progressive growing has a scale made by torch.empty that nobody fills."""
# label: phase=load mechanism=UNINIT category=N6 category_alt=N9 birth_op=aten::empty,aten::fill_ kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=init needs= fragile=no
import os

import torch
from torch import nn

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
torch.use_deterministic_algorithms(True)  # fresh memory is filled with NaN, so the run repeats
DEVICE = os.environ.get("DEVICE", "cpu")


class ScaledBlock(nn.Module):
    def __init__(self, dim, init_value=None):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.scale = nn.Parameter(torch.empty(dim, device=DEVICE))  # BUG
        if init_value is not None:
            nn.init.constant_(self.scale, init_value)

    def forward(self, x):
        return x + self.scale * torch.relu(self.fc(x))  # BUG-ALT


class GrowingNet(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.dim = dim
        self.blocks = nn.ModuleList([ScaledBlock(dim, init_value=0.1)])
        self.head = nn.Linear(dim, 2)

    def grow(self):
        self.blocks.append(ScaledBlock(self.dim).to(DEVICE))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


torch.manual_seed(4)
net = GrowingNet().to(DEVICE)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
data, labels = torch.randn(16, 12), torch.randint(0, 2, (16,))
for step in range(4):
    if step == 2:
        net.grow()
        opt = torch.optim.SGD(net.parameters(), lr=0.02)
    loss = nn.functional.cross_entropy(net(data.to(DEVICE)), labels.to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p61 loss", loss.item())
