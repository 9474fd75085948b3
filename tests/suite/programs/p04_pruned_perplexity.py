"""Training is healthy, but the perplexity on a pruned vocabulary takes log of probability 0."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2,N1 birth_op=aten::log kind=-inf first_step=4
# label: severity=warning loss_stays_finite=yes dtype=fp32 model=rnn family=log needs= fragile=no
import os

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = os.environ.get("DEVICE", "cpu")
VOCAB, KEPT, HIDDEN = 40, 32, 16


class TinyLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.rnn = nn.GRU(HIDDEN, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, VOCAB)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.head(hidden)


@torch.no_grad()
def perplexity(model, tokens, keep):
    """Perplexity when the output layer may only use the kept words."""
    probs = model(tokens[:, :-1]).softmax(dim=-1) * keep
    probs = probs / probs.sum(dim=-1, keepdim=True)
    picked = probs.gather(-1, tokens[:, 1:, None]).squeeze(-1)
    nll = -torch.log(picked)  # BUG
    return nll.mean().exp().item()


torch.manual_seed(4)
model = TinyLM().to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
keep = (torch.arange(VOCAB) < KEPT).float().to(DEVICE)
corpus = torch.randint(0, KEPT, (8, 4, 11))
held_out = torch.randint(0, KEPT, (4, 11))
held_out[2, 5] = VOCAB - 1  # a rare word that pruning removed
corpus, held_out = corpus.to(DEVICE), held_out.to(DEVICE)

for step, batch in enumerate(corpus, start=1):
    logits = model(batch[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 4 == 0:
        ppl = perplexity(model, held_out, keep)
        print("step %d loss %.3f perplexity %.3f" % (step, loss.item(), ppl))
