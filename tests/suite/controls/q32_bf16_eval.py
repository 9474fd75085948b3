"""Trained in single precision, evaluated in bfloat16 with the type's lowest value as the mask."""
# label: tempts=precision max_severity=none dtype=bf16 needs=
import copy
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class AttentionPool(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.norm, self.score = nn.LayerNorm(width), nn.Linear(width, 1)
        self.head = nn.Linear(width, classes)

    def forward(self, x, padding):
        x = self.norm(x)
        score = self.score(x)[..., 0]
        score = score.masked_fill(padding, torch.finfo(score.dtype).min)
        return self.head((score.softmax(1)[..., None] * x).sum(1))


def make_batch():
    x = torch.randn(16, 6, 12)
    length = torch.randint(1, 7, (16,))
    padding = torch.arange(6)[None, :] >= length[:, None]
    return x.to(DEVICE), padding.to(DEVICE), (x[:, 0, 0] > 0).long().to(DEVICE)


torch.manual_seed(32)
model = AttentionPool(12, 2).to(DEVICE)
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(8):
    x, padding, label = make_batch()
    loss = F.cross_entropy(model(x, padding), label)
    opt.zero_grad()
    loss.backward()
    opt.step()

small = copy.deepcopy(model).to(torch.bfloat16).eval()
with torch.inference_mode():
    x, padding, label = make_batch()
    logits = small(x.bfloat16(), padding)
    accuracy = (logits.argmax(1) == label).float().mean().item()
print(f"bf16 evaluation: accuracy {accuracy:.2f}")
