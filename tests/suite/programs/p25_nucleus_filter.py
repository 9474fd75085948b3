"""Distillation from nucleus-filtered teacher logits; the filter forgets to keep the first token."""
# label: phase=forward mechanism=INDET category=N7 category_alt=N2,N4 birth_op=aten::_softmax kind=nan first_step=1
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=mask needs= fragile=no
import os

import torch
import torch.nn.functional as F

DEVICE = os.environ.get("DEVICE", "cpu")
VOCAB = 12


def nucleus_filter(logits, top_p):
    """Keep the most probable tokens while their cumulative probability stays within top_p."""
    ordered, index = logits.sort(dim=-1, descending=True)
    cumulative = ordered.softmax(dim=-1).cumsum(dim=-1)
    drop = torch.zeros_like(cumulative > top_p).scatter(-1, index, cumulative > top_p)
    return logits.masked_fill(drop, -float("inf"))  # INTENDED


def soft_cross_entropy(student_logits, teacher_probs):
    return -(teacher_probs * F.log_softmax(student_logits, dim=-1)).sum(dim=-1).mean()


def init_linear(inputs, outputs, gain):
    w = gain * torch.randn(outputs, inputs) / inputs ** 0.5
    return w.to(DEVICE), torch.zeros(outputs).to(DEVICE)


torch.manual_seed(25)
teacher_w, teacher_b = init_linear(8, VOCAB, gain=0.1)
student_w, student_b = init_linear(8, VOCAB, gain=0.1)
student_w.requires_grad_()
student_b.requires_grad_()
opt = torch.optim.Adagrad([student_w, student_b], lr=0.05)

for epoch in range(3):
    context = torch.randn(10, 8)
    if epoch == 1:
        context[4] = 100.0 * teacher_w[7].cpu()  # a prompt of which the teacher is quite sure
        context[4] *= 200.0 / (teacher_w[7].cpu() @ context[4])
    context = context.to(DEVICE)
    with torch.no_grad():
        teacher_logits = F.linear(context, teacher_w, teacher_b)
        target = F.softmax(nucleus_filter(teacher_logits, top_p=0.9), dim=-1)  # BUG
    loss = soft_cross_entropy(F.linear(context, student_w, student_b), target)
    opt.zero_grad()
    loss.backward()
    opt.step()

print("distillation loss %.4f" % loss.item())
