"""A model of sequences that searches its likeliest ones by beams before each step: each word needs those before it."""
import torch
from torch import nn

torch.manual_seed(0)
words, cell, out = nn.Embedding(32, 16), nn.GRUCell(16, 32), nn.Linear(32, 32)
optimizer = torch.optim.SGD([*words.parameters(), *cell.parameters(), *out.parameters()], lr=0.1)


@torch.no_grad()
def search(beams=4, length=20):
    state, score = torch.zeros(beams, 32), torch.tensor([0.0] + [-1e9] * (beams - 1))
    found = torch.zeros(beams, length + 1, dtype=torch.long)
    for at in range(length):
        state = cell(words(found[:, at]), state)
        all_scores = (score[:, None] + out(state).log_softmax(-1)).flatten()
        score, best = all_scores.topk(beams)
        beam = best // 32
        state, found = state[beam], found[beam]
        found[:, at + 1] = best % 32
    return found[0]


for step in range(24):
    target, state, losses = search(), torch.zeros(1, 32), []
    for at in range(20):
        state = cell(words(target[at:at + 1]), state)
        losses.append(nn.functional.cross_entropy(out(state), (target[at + 1:at + 2] + 1) % 32))
    optimizer.zero_grad()
    torch.stack(losses).mean().backward()
    optimizer.step()
