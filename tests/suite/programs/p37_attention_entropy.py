"""Attention pooling with an entropy bonus; padded keys get probability 0 and a masked log."""
# label: phase=forward mechanism=DOM category=N3 category_alt=N4,N2 birth_op=aten::log kind=-inf first_step=1
# label: severity=error loss_stays_finite=no dtype=fp32 model=attention family=where needs= fragile=no
import os

import torch
import torch.nn.functional as F

DEVICE = os.environ.get("DEVICE", "cpu")


def init_params(vocab, width, classes):
    def randn(*shape):
        return (0.3 * torch.randn(*shape)).to(DEVICE).requires_grad_()
    return {"embed": randn(vocab, width), "score": randn(width), "head": randn(width, classes)}


def pool(params, tokens, padding):
    """Class scores and attention probabilities of a batch of token ids."""
    x = F.embedding(tokens, params["embed"])
    scores = torch.tanh(x) @ params["score"]
    scores = scores.masked_fill(padding, float("-inf"))  # INTENDED
    attention = torch.softmax(scores, dim=1)
    return (attention[:, :, None] * x).sum(dim=1) @ params["head"], attention


def entropy(attention, padding):
    log_attention = torch.log(attention)  # BUG
    log_attention = torch.where(padding, torch.zeros_like(attention), log_attention)
    return -(attention * log_attention).sum(dim=1).mean()


torch.manual_seed(37)
params = init_params(vocab=30, width=12, classes=3)
opt = torch.optim.Adam(params.values(), lr=1e-2)
lengths = [[6, 6, 6, 6], [6, 4, 6, 3], [5, 6, 6, 6], [6, 6, 6, 6]]
for length in lengths:
    tokens = torch.randint(1, 30, (4, 6))
    labels = tokens[:, 0] % 3
    padding = torch.arange(6)[None, :] >= torch.tensor(length)[:, None]
    tokens, labels, padding = (t.to(DEVICE) for t in (tokens, labels, padding))
    logits, attention = pool(params, tokens, padding)
    loss = F.cross_entropy(logits, labels) - 0.01 * entropy(attention, padding)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"attention pooling: last loss {loss.item():.4f}")
