"""CTC written with plain probabilities: after three hundred frames their product is zero, and its log infinite."""
# label: phase=forward mechanism=UDF category=N4 category_alt=N8,N2 birth_op=aten::log kind=-inf first_step=21
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=speech_ctc_underflow needs= fragile=no
# label: thread=rakeshvar/rnn_ctc#2 uses= fix_kind=stable_function
# fix: the recursion over frames is done with logarithms
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
LETTERS, BLANK = 6, 0


def with_blanks(text):
    spaced = torch.full((2 * len(text) + 1,), BLANK)
    spaced[1::2] = text
    return spaced


def may_skip(spaced):
    """States that may be reached from the one before the last: letters that differ from it."""
    skip = torch.zeros(len(spaced))
    skip[2:] = ((spaced[2:] != BLANK) & (spaced[2:] != spaced[:-2])).float()
    return skip


def ctc_probabilities(probability, text):
    spaced = with_blanks(text)
    emitted, skip = probability[:, spaced], may_skip(spaced)
    start = torch.zeros(len(spaced))
    start[:2] = 1.0
    alpha = start * emitted[0]
    for frame in emitted[1:]:
        one, two = nn.functional.pad(alpha, (1, 0))[:-1], nn.functional.pad(alpha, (2, 0))[:-2]
        alpha = (alpha + one + skip * two) * frame  # BUG-ALT
    return -torch.log(alpha[-2:].sum())  # BUG


def ctc_logarithms(logp, text, never=-1e4):
    spaced = with_blanks(text)
    emitted, skip = logp[:, spaced], (1 - may_skip(spaced)) * never
    start = torch.full((len(spaced),), never)
    start[:2] = 0.0
    alpha = start + emitted[0]
    for frame in emitted[1:]:
        one = nn.functional.pad(alpha, (1, 0), value=never)[:-1]
        two = nn.functional.pad(alpha, (2, 0), value=never)[:-2] + skip
        alpha = torch.logaddexp(torch.logaddexp(alpha, one), two) + frame
    return -torch.logaddexp(alpha[-1], alpha[-2])


class Recogniser(nn.Module):
    def __init__(self, features=8, width=24):
        super().__init__()
        self.rnn, self.out = nn.GRU(features, width, batch_first=True), nn.Linear(width, LETTERS + 1)

    def forward(self, frames):
        return self.out(self.rnn(frames)[0])


def utterance(step):
    """Letters said for some frames each; from step 21 on whole sentences are read, slowly."""
    letters, frames = (4, 8) if step < 21 else (12, 30)
    text = torch.randint(1, LETTERS + 1, (letters,))
    spoken = nn.functional.one_hot(text.repeat_interleave(frames), 8).float()
    return spoken + 0.3 * torch.randn_like(spoken), text


torch.manual_seed(135)
model = Recogniser()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(26):
    frames, text = utterance(step)
    logits = model(frames[None])[0]
    if FIXED:
        loss = ctc_logarithms(logits.log_softmax(dim=1), text)
    else:
        loss = ctc_probabilities(logits.softmax(dim=1), text)
    loss = loss / len(text)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
print(f"ctc loss per letter {loss.item():.4f}")
