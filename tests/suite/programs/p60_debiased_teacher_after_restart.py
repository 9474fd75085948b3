"""Mean teacher with a debiased average: a warm restart asks for the teacher before any update."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt=N2 birth_op=aten::div kind=nan first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=clip_ema needs= fragile=no
import os

import torch
from torch import nn
from torch.func import functional_call

DEVICE = os.environ.get("DEVICE", "cpu")
DECAY = 0.9


def new_average(model):
    return {"t": 0, "sum": {k: torch.zeros_like(p) for k, p in model.named_parameters()}}


@torch.no_grad()
def update(average, model):
    average["t"] += 1
    for name, p in model.named_parameters():
        average["sum"][name].mul_(DECAY).add_(p, alpha=1 - DECAY)


@torch.no_grad()
def teacher_weights(average):
    correction = 1 - DECAY ** average["t"]
    return {k: s / correction for k, s in average["sum"].items()}  # BUG


torch.manual_seed(3)
student = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 4)).to(DEVICE)
opt = torch.optim.AdamW(student.parameters(), lr=1e-2)
average = new_average(student)
update(average, student)
x = torch.randn(32, 10)
y = torch.randint(0, 4, (32,))
for step in range(5):
    if step == 3:  # warm restart: the history of the first cycle is dropped
        average = new_average(student)
    noisy = (x + 0.1 * torch.randn_like(x)).to(DEVICE)
    with torch.no_grad():
        target = functional_call(student, teacher_weights(average), (x.to(DEVICE),)).softmax(-1)
    logits = student(noisy)
    consistency = (logits.softmax(-1) - target).square().mean()
    loss = nn.functional.cross_entropy(logits, y.to(DEVICE)) + consistency
    opt.zero_grad()
    loss.backward()
    opt.step()
    update(average, student)
print("p60 loss", loss.item())
