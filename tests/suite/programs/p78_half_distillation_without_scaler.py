"""Half student, float loss, no loss scaler: a small distillation weight flushes every gradient."""
# label: phase=backward mechanism=UDF category=N8 category_alt=N5 birth_op=aten::_to_copy,aten::copy_ kind=zero first_step=2
# label: severity=warning loss_stays_finite=yes dtype=fp16 model=mlp family=half needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
PIXELS = 4096


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x)


def distillation_loss(student_out, teacher_out, weight):
    student_map = student_out.float()  # BUG
    return weight * (student_map - teacher_out).square().mean()


torch.manual_seed(21)
student = Student().half().to(DEVICE)
teacher = nn.Linear(6, 1).to(DEVICE)
opt = torch.optim.SGD(student.parameters(), lr=0.1)
pixels = torch.rand(PIXELS, 6)
norms = []
for weight in (1.0, 1.0, 1e-6, 1e-6):  # the weight is lowered for the second stage
    with torch.no_grad():
        target = teacher(pixels.to(DEVICE))
    loss = distillation_loss(student(pixels.half().to(DEVICE)), target, weight)
    opt.zero_grad()
    loss.backward()
    opt.step()
    norms.append(sum(p.grad.float().abs().sum().item() for p in student.parameters()))
print("p78 gradient sums", " ".join(f"{n:.3g}" for n in norms))
