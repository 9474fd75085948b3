"""Policy gradient on a decoder whose grammar sets illegal logits to minus infinity."""
# label: tempts=mask max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
DIGIT, PLUS, END, VOCAB = 0, 10, 11, 12


def legal_after(previous):
    """A sum is digit (+ digit)*: after a digit comes '+' or the end, after '+' a digit."""
    legal = torch.zeros(len(previous), VOCAB, dtype=torch.bool, device=previous.device)
    after_digit = previous < PLUS
    legal[after_digit, PLUS:] = True
    legal[previous == PLUS, :PLUS] = True
    legal[previous == END, END] = True
    return legal


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell = nn.Embedding(VOCAB, 24), nn.GRUCell(24, 24)
        self.head = nn.Linear(24, VOCAB)

    def sample(self, batch, length):
        token = torch.full((batch,), PLUS).to(DEVICE)
        hidden = torch.zeros(batch, 24).to(DEVICE)
        score, digits = 0.0, torch.zeros(batch).to(DEVICE)
        for _ in range(length):
            hidden = self.cell(self.embed(token), hidden)
            logits = self.head(hidden).masked_fill(~legal_after(token), float("-inf"))
            log_prob = torch.log_softmax(logits, dim=1)
            token = torch.multinomial(log_prob.detach().exp().cpu(), 1)[:, 0].to(DEVICE)
            score = score + log_prob.gather(1, token[:, None])[:, 0]
            digits = digits + (token < PLUS)
        return score, digits


torch.manual_seed(10)
decoder = Decoder().to(DEVICE)
opt = torch.optim.Adam(decoder.parameters(), lr=1e-2)
for step in range(5):
    score, reward = decoder.sample(batch=16, length=6)
    loss = -((reward - reward.mean()) * score).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"constrained decoding: mean reward {reward.mean().item():.2f}")
