"""A language model kept in half precision is trained by Adam with its default eps, which half precision rounds to zero."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt=N8 birth_op=aten::addcdiv_,aten::_foreach_addcdiv_ kind=nan first_step=0
# label: severity=error loss_stays_finite=yes dtype=fp16 model=rnn family=half_adam needs= fragile=no
# label: thread=https://discuss.pytorch.org/t/adam-half-precision-nans/1765 uses= fix_kind=config
# fix: eps=1e-4 is passed to Adam, a number that half precision can hold; the type stays, so N8 is only the other answer
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class LetterModel(nn.Module):
    def __init__(self, letters=30, width=24):
        super().__init__()
        self.embed, self.mix = nn.Embedding(letters, width), nn.Linear(2 * width, width)
        self.out = nn.Linear(width, letters)

    def forward(self, text):
        now = self.embed(text)
        before = torch.nn.functional.pad(now, (0, 0, 1, 0))[:, :-1]
        return self.out(torch.tanh(self.mix(torch.cat([now, before], dim=-1))))


def text(count=8, length=20):
    """Lines in which letter follows letter with few surprises; a few letters are rare."""
    start = torch.randint(0, 25, (count, 1))
    return (start + torch.arange(length)) % 25


torch.manual_seed(1765)
model = LetterModel().half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **({"eps": 1e-4} if FIXED else {}))
for step in range(12):
    lines = text()
    logits = model(lines[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), lines[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # BUG
    if not model.embed.weight.isfinite().all():
        break
print(f"loss {loss.item():.3f}, embedding {model.embed.weight.float().norm().item():.3f}")
