"""A teacher in bf16 follows its student by a thousandth a step: below the last bit, it stays as it was."""
# label: phase=optimizer mechanism=PREC category=N8 category_alt=N5 birth_op=aten::lerp_ kind=zero first_step=
# label: severity=warning loss_stays_finite=yes dtype=bf16 model=mlp family=underflow needs= fragile=no
import copy
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


@torch.no_grad()
def follow(teacher, student, share=1e-3):
    for slow, fast in zip(teacher.parameters(), student.parameters()):
        slow.lerp_(fast.to(slow.dtype), share)  # BUG


torch.manual_seed(89)
student = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 3)).to(DEVICE)
teacher = copy.deepcopy(student).bfloat16().requires_grad_(False)
first = [p.clone() for p in teacher.parameters()]
opt = torch.optim.SGD(student.parameters(), lr=0.02)
for step in range(10):
    x = torch.randn(32, 6).to(DEVICE)
    with torch.no_grad():
        soft = teacher(x.bfloat16()).float()
    loss = nn.functional.mse_loss(student(x), 0.5 * soft + 0.5 * x[:, :3])
    opt.zero_grad()
    loss.backward()
    opt.step()
    follow(teacher, student)
moved = sum(int((p != q).sum()) for p, q in zip(teacher.parameters(), first))
print(f"p89 teacher: {moved} of {sum(p.numel() for p in first)} weights moved, loss {loss.item():.3f}")
