"""Translation with attention: someone replaced -1e10 by -inf in the mask, and one source sentence is padding only."""
# label: phase=forward mechanism=INDET category=N7 category_alt=N1,N2 birth_op=aten::_softmax kind=nan first_step=23
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=attention_all_padding needs= fragile=no
# label: thread=bentrevett/pytorch-seq2seq#191 uses= fix_kind=mask
# fix: the mask is filled with a large finite number again; an empty sentence then attends to everything alike
import os

import torch
import torch.nn.functional as F
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
PAD = 0


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.energy, self.v = nn.Linear(2 * width, width), nn.Linear(width, 1, bias=False)

    def forward(self, state, outputs, mask):
        state = state[:, None].expand_as(outputs)
        score = self.v(torch.tanh(self.energy(torch.cat([state, outputs], dim=2)))).squeeze(2)
        score = score.masked_fill(mask == 0, -1e10 if FIXED else float("-inf"))  # BUG-ALT
        return torch.softmax(score, dim=1)  # BUG


class Translator(nn.Module):
    def __init__(self, source_words, target_words, width=24):
        super().__init__()
        self.source, self.target = nn.Embedding(source_words, width), nn.Embedding(target_words, width)
        self.encoder, self.cell = nn.GRU(width, width, batch_first=True), nn.GRUCell(2 * width, width)
        self.attention, self.out = Attention(width), nn.Linear(2 * width, target_words)

    def forward(self, source, target):
        outputs, state = self.encoder(self.source(source))
        state, logits, mask = state[0], [], source != PAD
        for t in range(target.shape[1] - 1):
            weight = self.attention(state, outputs, mask)
            context = (weight[:, None] @ outputs).squeeze(1)
            state = self.cell(torch.cat([self.target(target[:, t]), context], dim=1), state)
            logits.append(self.out(torch.cat([state, context], dim=1)))
        return torch.stack(logits, dim=1)


def sentence_pairs(step, count=16, longest=8):
    """Target words are source words one further; corpus lines whose words were all filtered out stay in, empty."""
    length = torch.randint(3, longest + 1, (count, 1))
    source = torch.randint(1, 20, (count, longest)) * (torch.arange(longest) < length)
    target = torch.cat([torch.full((count, 1), 21), (source + 1) * (source != PAD)], dim=1)
    if step == 23:
        source[9] = PAD
        target[9, 1:] = PAD
        target[9, 1] = 20  # only the full stop was left of it
    return source, target


torch.manual_seed(125)
model = Translator(21, 22)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(30):
    source, target = sentence_pairs(step)
    logits = model(source, target)
    loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"translation loss {loss.item():.4f}")
