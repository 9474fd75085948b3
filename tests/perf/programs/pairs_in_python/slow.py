"""Word vectors from pairs of near words, which plain Python draws for each step."""
import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
text = [random.randint(0, 499) for _ in range(20000)]


def pairs(n):
    chosen = []
    while len(chosen) < n:
        at = random.randint(5, len(text) - 6)
        other = at + random.choice([-5, -4, -3, -2, -1, 1, 2, 3, 4, 5])
        wrong = [random.randint(0, 499) for _ in range(4)]
        chosen.append((text[at], text[other], *wrong))
    return chosen


vectors, contexts = nn.Embedding(500, 24), nn.Embedding(500, 24)
optimizer = torch.optim.SGD([*vectors.parameters(), *contexts.parameters()], lr=0.2)
for step in range(60):
    batch = pairs(256)
    words = torch.tensor(batch)  # SLOW
    score = (vectors(words[:, :1]) * contexts(words[:, 1:])).sum(-1)
    loss = -nn.functional.logsigmoid(score[:, 0]).mean() - nn.functional.logsigmoid(-score[:, 1:]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
