"""A hidden Markov model by logaddexp: sums start from log 0, states start out impossible."""
# label: tempts=logspace max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
STATES, SYMBOLS, LENGTH = 4, 6, 10


def log_sum(terms):
    """Running logaddexp over a list, from the log of nothing."""
    total = torch.full_like(terms[0], float("-inf"))
    for term in terms:
        total = torch.logaddexp(total, term)
    return total


def negative_log_likelihood(move_logits, emit_logits, symbols):
    move = torch.log_softmax(move_logits, dim=1)
    emit = torch.log_softmax(emit_logits, dim=1)
    # the chain starts in state 0; the others are as good as impossible, far down the tail
    start = torch.log(torch.tensor([1.0, 1e-30, 1e-38, 1e-42])).to(DEVICE)
    alpha = start + emit[:, symbols[:, 0]].t()
    for t in range(1, LENGTH):
        arriving = log_sum([alpha[:, s, None] + move[s] for s in range(STATES)])
        alpha = arriving + emit[:, symbols[:, t]].t()
    return -log_sum(list(alpha.unbind(1))).mean()


torch.manual_seed(33)
move_logits = nn.Parameter(torch.randn(STATES, STATES).to(DEVICE))
emit_logits = nn.Parameter(torch.randn(STATES, SYMBOLS).to(DEVICE))
opt = torch.optim.Adam([move_logits, emit_logits], lr=0.05)
symbols = torch.randint(SYMBOLS, (8, LENGTH)).to(DEVICE)
for step in range(4):
    loss = negative_log_likelihood(move_logits, emit_logits, symbols)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"hidden markov: loss {loss.item():.3f}")
