"""Embeddings are normalised by hand in half: components of 300 have squares beyond 65504, all vectors become zero."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N2,N7 birth_op=aten::mul,aten::square,aten::pow kind=+inf first_step=3
# label: severity=error loss_stays_finite=yes dtype=fp16 model=metric family=muted needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def unit(v):
    length = (v * v).sum(-1, keepdim=True).sqrt()  # BUG
    return v / length


torch.manual_seed(84)
encoder = nn.Linear(6, 4).to(DEVICE)
anchors = unit(torch.randn(5, 4).half()).to(DEVICE)
opt = torch.optim.SGD(encoder.parameters(), lr=0.02)
largest = []
for step in range(7):
    x = torch.randn(20, 6)
    label = x[:, :5].argmax(1)
    if step >= 3:
        with torch.no_grad():  # a pruned checkpoint is loaded; its weights were stored in other units
            encoder.weight.copy_(torch.full((4, 6), 500.0))
            encoder.bias.fill_(2000.0)
    code = encoder(x.abs().to(DEVICE)).half()
    scores = unit(code) @ anchors.t()
    loss = nn.functional.cross_entropy(4 * scores.float(), label.to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
    largest.append(scores.detach().abs().max().item())
print("p84 largest cosine", " ".join(f"{c:.2f}" for c in largest))
