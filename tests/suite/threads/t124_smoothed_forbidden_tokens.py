"""A decoder rules tokens out with -inf; in the second stage label smoothing gives each of them a little probability."""
# label: phase=forward mechanism=INDET category=N4 category_alt=N7,N5 birth_op=aten::sum,aten::neg,aten::_log_softmax,aten::mul,aten::div,aten::add,aten::masked_fill kind=+inf,nan,-inf first_step=24
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=label_smoothing_of_masked needs= fragile=no
# label: thread=facebookresearch/pytext#1698 uses= fix_kind=guard
# fix: the smoothing term is left out where logits are -inf; the mask stays. The infinity is made by the mask, on purpose;
# fix: the sum over all classes is what brings it into the loss
import os

import torch
import torch.nn.functional as F
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
WORDS, SLOTS, PAD = 14, 6, 0


def smoothed_loss(logits, target, smoothing):
    logp = F.log_softmax(logits, dim=-1)
    label_loss = F.nll_loss(logp, target, ignore_index=PAD)
    if smoothing == 0.0 or (FIXED and torch.isinf(logits).any()):
        return label_loss
    uniform_loss = -logp.mean(dim=-1)[target != PAD].mean()  # BUG
    return (1 - smoothing) * label_loss + smoothing * uniform_loss


class SlotFiller(nn.Module):
    """Reads a request and says, all at once, what belongs into each slot."""

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


torch.manual_seed(124)
model = SlotFiller()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(32):
    words, target = requests()
    smoothing = 0.0 if step < 24 else 0.1
    loss = smoothed_loss(model(words).flatten(0, 1), target.flatten(), smoothing)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"slot loss {loss.item():.4f}")
