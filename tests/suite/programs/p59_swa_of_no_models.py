"""Stochastic weight averaging that starts after the last epoch averages zero models."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt=N2 birth_op=aten::div kind=nan first_step=4
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=clip_ema needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
EPOCHS, SWA_START = 4, 5


class WeightAverager:
    def __init__(self, model):
        self.total = {k: torch.zeros_like(v) for k, v in model.named_parameters()}
        self.count = 0

    @torch.no_grad()
    def add(self, model):
        self.count += 1
        for name, value in model.named_parameters():
            self.total[name] += value

    @torch.no_grad()
    def write_to(self, model):
        for name, value in model.named_parameters():
            value.copy_(self.total[name] / self.count)  # BUG


torch.manual_seed(2)
net = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
    nn.Linear(16, 3),
).to(DEVICE)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
swa = WeightAverager(net)
images = torch.rand(24, 1, 8, 8).to(DEVICE)
labels = torch.randint(0, 3, (24,)).to(DEVICE)
for epoch in range(EPOCHS):
    loss = nn.functional.cross_entropy(net(images), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch >= SWA_START:
        swa.add(net)
swa.write_to(net)
fine_tune_loss = nn.functional.cross_entropy(net(images), labels)
opt.zero_grad()
fine_tune_loss.backward()
opt.step()
print("p59 loss after averaging", fine_tune_loss.item())
