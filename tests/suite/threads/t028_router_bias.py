"""A mixture of experts whose router bias no initialiser touches; deterministic mode fills fresh memory with NaN."""
# label: phase=load mechanism=UNINIT category=N6 category_alt=N9 birth_op=aten::empty,aten::fill_ kind=nan first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=moe family=unset_bias needs= fragile=no
# label: thread=pytorch/torchtitan#2450 uses= fix_kind=init
# fix: the model's own initialiser sets the router's bias to zero, as it does for all other parameters
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
torch.use_deterministic_algorithms(True)


class Router(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(experts, width))
        self.bias = nn.Parameter(torch.empty(experts))  # BUG

    def initialise(self):
        nn.init.trunc_normal_(self.weight, std=0.02)
        if FIXED:
            nn.init.zeros_(self.bias)

    def forward(self, x):
        score, chosen = (x @ self.weight.T + self.bias).topk(2, dim=-1)  # BUG-ALT
        return score.softmax(dim=-1), chosen


class ExpertLayer(nn.Module):
    def __init__(self, width=16, experts=4):
        super().__init__()
        self.router = Router(width, experts)
        self.up = nn.Parameter(torch.empty(experts, width, 2 * width))
        self.down = nn.Parameter(torch.empty(experts, 2 * width, width))

    def initialise(self):
        self.router.initialise()
        nn.init.trunc_normal_(self.up, std=0.1)
        nn.init.trunc_normal_(self.down, std=0.1)

    def forward(self, x):
        share, chosen = self.router(x)
        hidden = torch.relu(torch.einsum("tw,tkwh->tkh", x, self.up[chosen]))
        return x + (share[..., None] * torch.einsum("tkh,tkhw->tkw", hidden, self.down[chosen])).sum(dim=1)


torch.manual_seed(2450)
layers = nn.ModuleList([ExpertLayer(), ExpertLayer()])
for layer in layers:
    layer.initialise()
optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-3)
for step in range(3):
    x = torch.randn(32, 16)
    y = x
    for layer in layers:
        y = layer(y)
    loss = (y - x.roll(1, dims=-1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
