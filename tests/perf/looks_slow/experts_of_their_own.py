"""Experts, heads and tasks that are modules: each has parameters of its own, and rows of which a mask says how many."""
import torch
from torch import nn

torch.manual_seed(0)
experts = nn.ModuleList([nn.Linear(8, 8) for _ in range(20)])
heads = nn.ModuleList([nn.Linear(8, 2) for _ in range(20)])
gate = nn.Linear(8, 20)
kept = [*experts.parameters(), *heads.parameters(), *gate.parameters()]
optimizer = torch.optim.SGD(kept, lr=0.01, foreach=True)
for step in range(24):
    x = torch.randn(256, 8)
    chances = gate(x).softmax(-1)
    best = chances.argmax(-1)
    mixed = torch.zeros(256, 8)
    for number, expert in enumerate(experts):
        rows = (best == number).nonzero().squeeze(-1)
        mixed = mixed.index_add(0, rows, expert(x[rows]) * chances[rows, number, None])
    dense = sum(chances[:, number, None] * expert(x) for number, expert in enumerate(experts))
    parts = torch.randn(64, 20, 8)
    answers = torch.stack([head(parts[:, number]) for number, head in enumerate(heads)], 1)
    loss = mixed.square().mean() + dense.square().mean() + answers.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
