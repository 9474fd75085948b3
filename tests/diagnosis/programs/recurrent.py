"""Signs of sums by a GRU, binary cross entropy, a fused Adam. The first argument is the fault that it has."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

FAULT = sys.argv[1] if len(sys.argv) > 1 else "healthy"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 100


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.GRU(4, 24, batch_first=True)
        self.mix = nn.Linear(24, 24)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        states, _ = self.cells(x)
        hidden = F.relu(self.mix(states[:, -1]))  # ND105
        output = self.head(hidden).squeeze(1)
        if FAULT == "ND102":
            output = torch.sigmoid(output)  # ND102
        return output


torch.manual_seed(5)
model = Net()
if FAULT == "ND105":
    nn.init.constant_(model.mix.bias, -30.0)
rate = {"ND107": 50.0, "ND108": 1e-12}.get(FAULT, 1e-2)
optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
if FAULT == "ND104":
    model = Net()
for step in range(STEPS):
    x = torch.randn(64, 6, 4)
    loss = F.binary_cross_entropy_with_logits(model(x), (x[:, :, 0].sum(1) > 0).float())
    if FAULT == "ND104":
        model.zero_grad()
    elif FAULT != "ND101":
        optimizer.zero_grad()
    loss.backward()  # ND101
    optimizer.step()  # ND104 ND107 ND108
print(f"{loss.item():.3f}")
