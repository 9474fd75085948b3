"""A branch without features (fan-in 0) gets biases drawn from an infinite bound."""
# label: phase=load mechanism=DIV0 category=N6 category_alt=N2,N7 birth_op=aten::rsqrt,aten::div,aten::reciprocal kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=init needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def init_branch(features, width):
    """Weight and bias of one branch, uniform within 1/sqrt(fan-in)."""
    fan_in = torch.tensor(float(features))
    bound = fan_in.rsqrt()  # BUG
    weight = (torch.rand(width, features) * 2 - 1) * bound
    bias = (torch.rand(width) * 2 - 1) * bound
    return nn.Parameter(weight.to(DEVICE)), nn.Parameter(bias.to(DEVICE))


class Branches(nn.Module):
    def __init__(self, groups, width=8):
        super().__init__()
        self.sizes = [len(columns) for columns in groups]
        pairs = [init_branch(size, width) for size in self.sizes]
        self.weights = nn.ParameterList([w for w, _ in pairs])
        self.biases = nn.ParameterList([b for _, b in pairs])
        self.head = nn.Linear(width * len(groups), 1).to(DEVICE)

    def forward(self, x):
        parts = x.split(self.sizes, dim=1)
        hidden = [torch.tanh(p @ w.t()) + b for p, w, b in zip(parts, self.weights, self.biases)]
        return self.head(torch.cat(hidden, 1)).squeeze(-1)


def fit(model, x, y, steps):
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        loss = nn.functional.huber_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


torch.manual_seed(7)
x = torch.randn(20, 6).to(DEVICE)
y = x[:, 0] - 0.5 * x[:, 3]
fit(Branches([["age", "income"], ["clicks", "views"], ["lat", "lon"]]), x, y, steps=2)
# second configuration of the search: the text columns were dropped, the branch was not
second = Branches([["age", "income", "clicks"], [], ["views", "lat", "lon"]])
print("p64 loss", fit(second, x, y, steps=2))
