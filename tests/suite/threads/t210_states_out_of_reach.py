"""A left-to-right word model in log space: states that cannot be reached yet have log probability minus infinity."""
# label: phase=backward mechanism=INDET category=N3 category_alt=N2,N4 birth_op=aten::sub,aten::exp kind=nan first_step=110
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=forward_algorithm_impossible needs= fragile=no
# label: thread=pytorch/pytorch#31829 uses= fix_kind=where
# fix: the smallest finite number stands for an impossible state instead of minus infinity, so that the derivative of a
# fix: log-sum over impossible states is finite
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
IMPOSSIBLE = torch.finfo(torch.float32).min / 4 if FIXED else float("-inf")


class WordModel(nn.Module):
    """Each state stays or goes on to the next one; a word begins in its first state and ends in its last."""

    def __init__(self, sounds=10, features=8, width=32):
        super().__init__()
        self.scores = nn.Sequential(nn.Linear(features, width), nn.Tanh(), nn.Linear(width, sounds))
        self.stay = nn.Parameter(torch.zeros(sounds))

    def forward(self, frames, word):
        """The negative log likelihood of frames, given the sounds of the word."""
        emitted = self.scores(frames).log_softmax(dim=-1)[:, :, word]
        stay, go = (nn.functional.logsigmoid(sign * self.stay[word]) for sign in (1, -1))
        start = torch.full((len(frames), len(word)), IMPOSSIBLE)  # INTENDED
        nothing = start[:, :1].clone()
        start[:, 0] = 0.0
        state = start + emitted[:, 0]
        for t in range(1, frames.shape[1]):
            came = torch.cat([nothing, state[:, :-1] + go[:-1]], dim=1)
            state = torch.logsumexp(torch.stack([state + stay, came]), dim=0) + emitted[:, t]  # BUG
        return -state[:, -1].mean()


def recordings(length, sounds=10, count=6):
    """A word of so many sounds, and frames that resemble them, five a sound."""
    word = torch.randperm(sounds)[:length]
    return word, SOUNDS[word].repeat_interleave(5, dim=0) + 0.3 * torch.randn(count, 5 * length, 8)


torch.manual_seed(31829)
SOUNDS = torch.randn(10, 8)
model = WordModel()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(114):
    word, frames = recordings(2 if step < 110 else 3)  # longer words come later
    loss = model(frames, word)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"negative log likelihood {loss.item():.3f}")
