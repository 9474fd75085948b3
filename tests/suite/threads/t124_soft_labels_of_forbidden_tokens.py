"""A decoder rules tokens out with -inf; the second stage has soft labels, and zero times -inf is no number."""
# label: phase=forward mechanism=INDET category=N4 category_alt=N7 birth_op=aten::mul kind=nan first_step=24
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=soft_labels_of_masked needs= fragile=no
# label: thread=google-deepmind/optax#896 uses= fix_kind=where
# fix: terms whose label is zero are zero, whatever the logarithm of the probability is; the mask of -inf stays
import os

import torch
import torch.nn.functional as F
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
WORDS, SLOTS, PAD = 14, 6, 0


def soft_cross_entropy(logits, share):
    logp = F.log_softmax(logits, dim=-1)
    if FIXED:
        logp = logp.masked_fill(share == 0, 0.0)
    return -(share * logp).sum(dim=-1).mean()  # BUG


class SlotFiller(nn.Module):
    """Reads a request and says, all at once, what belongs into each slot; only words of the request may be said."""

    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.read = nn.GRU(width, width, batch_first=True)
        self.slots = nn.Linear(width, SLOTS * WORDS)

    def forward(self, words):
        _, state = self.read(self.embed(words))
        logits = self.slots(state[0]).view(-1, SLOTS, WORDS)
        said = F.one_hot(words, WORDS).any(dim=1, keepdim=True)
        said[..., PAD] = True
        return logits.masked_fill(~said, float("-inf"))  # BUG-ALT


def requests(count=32, length=8):
    words = torch.randint(1, WORDS, (count, length))
    return words, torch.where(torch.rand(count, SLOTS) < 0.1, PAD, words[:, :SLOTS])


def votes_of(target):
    """What three annotators said: one of them leaves a slot empty now and then."""
    empty = (torch.rand(target.shape) < 0.2).float()[..., None] / 3
    return (1 - empty) * F.one_hot(target, WORDS) + empty * F.one_hot(torch.full_like(target, PAD), WORDS)


torch.manual_seed(124)
model = SlotFiller()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(32):
    words, target = requests()
    logits = model(words).flatten(0, 1)
    if step < 24:
        loss = F.cross_entropy(logits, target.flatten())
    else:
        loss = soft_cross_entropy(logits, votes_of(target).flatten(0, 1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"slot loss {loss.item():.4f}")
