"""A classifier of points by SGD. The first argument is the fault that it has; `healthy` for none."""
import copy
import sys

import torch
from torch import nn
from torch.nn import functional as F

FAULT = sys.argv[1] if len(sys.argv) > 1 else "healthy"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 100


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 64)
        self.middle = nn.ModuleList(nn.Linear(64, 64) for _ in range(8 if FAULT == "ND106" else 1))
        self.head = nn.Linear(64, 4)
        if FAULT == "ND105":
            nn.init.constant_(self.first.bias, -1000.0)
        if FAULT == "ND109":
            nn.init.normal_(self.first.weight, std=100.0)

    def forward(self, x):
        if FAULT == "ND106":
            x = torch.sigmoid(self.first(x))  # ND106
            for layer in self.middle:
                x = torch.sigmoid(layer(x))
        elif FAULT == "ND109":
            x = torch.tanh(self.first(x))  # ND109
        else:
            x = torch.relu(self.first(x))  # ND105
            for layer in self.middle:
                x = torch.relu(layer(x))
        return self.head(x)


torch.manual_seed(1)
centres = torch.randn(4, 16)
model = Net()
rate = {"ND107": 100.0, "ND108": 1e-9, "ND109": 1e-4}.get(FAULT, 0.05)
optimizer = torch.optim.SGD(model.parameters(), lr=rate)
if FAULT == "ND104":
    model = copy.deepcopy(model)
for step in range(STEPS):
    labels = torch.randint(0, 4, (64,))
    points = centres[labels] + 0.7 * torch.randn(64, 16)
    output = model(points)
    if FAULT == "ND102":
        output = output.softmax(1)  # ND102
    if FAULT == "ND103":
        loss = F.nll_loss(output, labels)  # ND103
    else:
        loss = F.cross_entropy(output, labels)
    if FAULT == "ND104":
        model.zero_grad()
    elif FAULT != "ND101":
        optimizer.zero_grad()
    loss.backward()  # ND101
    optimizer.step()  # ND104 ND107 ND108
print(f"{loss.item():.3f}")
