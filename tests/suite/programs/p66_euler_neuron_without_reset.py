"""Quadratic integrate-and-fire neurons by explicit Euler, with no reset after the spike."""
# label: phase=forward mechanism=OVF category=N7 category_alt=N2,N5 birth_op=aten::mul kind=+inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=snn family=structure needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
DT, TIME_STEPS = 0.5, 12


class SpikingLayer(nn.Module):
    def __init__(self, inputs, neurons):
        super().__init__()
        self.synapse = nn.Linear(inputs, neurons, bias=False)
        with torch.no_grad():
            self.synapse.weight.fill_(0.05)

    def forward(self, current):
        drive = self.synapse(current)
        v = torch.full_like(drive, -1.0)
        for _ in range(TIME_STEPS):
            slope = v * v  # BUG
            v = v + DT * (slope + drive - 1.0)
        return v


def stimulus(step):
    """Four weak stimuli, then a strong pulse that pushes the neurons over the threshold."""
    base = torch.rand(6, 10) * 0.1
    return base + 20.0 if step == 3 else base


torch.manual_seed(9)
layer = SpikingLayer(10, 8).to(DEVICE)
readout = nn.Linear(8, 2).to(DEVICE)
opt = torch.optim.SGD([*layer.parameters(), *readout.parameters()], lr=1e-3)
labels = torch.randint(0, 2, (6,)).to(DEVICE)
for step in range(5):
    voltage = layer(stimulus(step).to(DEVICE))
    loss = nn.functional.cross_entropy(readout(voltage), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p66 loss", loss.item())
