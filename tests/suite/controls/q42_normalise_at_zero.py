"""A new word's zero embedding is normalised: its gradient nears 1e12, finite, and then clipped."""
# label: tempts=huge max_severity=none dtype=fp32 needs=
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
WORDS, WIDTH, NEW = 30, 8, 29


class WordClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        self.centre = nn.Parameter(torch.randn(4, WIDTH))
        with torch.no_grad():
            self.table.weight[NEW] = 0.0

    def forward(self, word):
        direction = F.normalize(self.table(word), dim=1)  # eps=1e-12
        return 5.0 * direction @ F.normalize(self.centre, dim=1).t()


torch.manual_seed(42)
model = WordClassifier().to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.5)
largest = 0.0
for step in range(6):
    word = torch.randint(NEW, (16,))
    if step == 3:
        word[0] = NEW
    loss = F.cross_entropy(model(word.to(DEVICE)), (word % 4).to(DEVICE))
    opt.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    largest = max(largest, norm.item())
    opt.step()
print(f"normalise at zero: largest gradient norm {largest:.1e}, loss {loss.item():.3f}")
