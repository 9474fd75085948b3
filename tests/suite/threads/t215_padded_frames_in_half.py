"""A speech encoder in half precision; its layer norms have an epsilon of 1e-12, and frames are padded."""
# label: phase=forward mechanism=DIV0 category=N5 category_alt=N8,N7 birth_op=aten::div kind=nan first_step=23
# label: severity=error loss_stays_finite=no dtype=fp16 model=transformer family=half_layer_norm_epsilon needs= fragile=no
# label: thread=wenet-e2e/wenet#907 uses= fix_kind=config
# fix: all epsilons of layer norms go from 1e-12 to the library's default, 1e-5
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
EPSILON = 1e-5 if FIXED else 1e-12


class LayerNorm(nn.Module):
    def __init__(self, width, eps=EPSILON):  # BUG-ALT
        super().__init__()
        self.weight, self.bias, self.eps = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width)), eps

    def forward(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        spread = (centred.square().mean(dim=-1, keepdim=True) + self.eps).sqrt()
        return centred / spread * self.weight + self.bias  # BUG


class Encoder(nn.Module):
    def __init__(self, bands=12, width=24, labels=5):
        super().__init__()
        self.inp, self.mix = nn.Linear(bands, width, bias=False), nn.Conv1d(width, width, 3, padding=1, bias=False)
        self.first, self.second, self.out = LayerNorm(width), LayerNorm(width), nn.Linear(width, labels)

    def forward(self, frames):
        h = self.first(self.inp(frames))
        h = h + torch.relu(self.mix(h.transpose(1, 2))).transpose(1, 2)
        return self.out(self.second(h).mean(dim=1))


def recordings(step, count=6, length=20):
    frames = torch.randn(count, length, 12) + torch.randn(count, 1, 12)
    if step == 23:
        frames[4, 13:] = 0.0  # the first batch with recordings of several lengths
    return frames


torch.manual_seed(907)
teacher, student = Encoder().requires_grad_(False).half(), Encoder()
optimizer = torch.optim.AdamW(student.parameters(), lr=2e-3)
for step in range(28):
    frames = recordings(step)
    wanted = teacher(frames.half()).float().softmax(dim=-1)
    loss = nn.functional.cross_entropy(student(frames), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
