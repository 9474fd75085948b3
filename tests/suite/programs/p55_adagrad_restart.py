"""A hand-written Adagrad restarts its sums; a word absent from the next batch gets 0/0."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt=N2 birth_op=aten::div kind=nan first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=embedding family=optimizer_eps needs= fragile=no
import os

import torch
import torch.nn.functional as F

DEVICE = os.environ.get("DEVICE", "cpu")
VOCAB, WIDTH = 12, 6


def make_table():
    return (0.1 * torch.randn(VOCAB, WIDTH)).to(DEVICE).requires_grad_()


def cbow_loss(embedding, output, context, target):
    """Cross-entropy of a word given the mean of its neighbours."""
    hidden = embedding[context].mean(dim=1)
    return F.cross_entropy(hidden @ output.T, target)


@torch.no_grad()
def adagrad_step(param, accumulator, lr=0.1):
    accumulator += param.grad * param.grad
    param -= lr * param.grad / accumulator.sqrt()  # BUG
    param.grad = None


def windows(words):
    """Every word with its two neighbours, the text taken as a ring."""
    context = torch.stack([words.roll(1), words.roll(-1)], dim=1)
    return context.to(DEVICE), words.to(DEVICE)


torch.manual_seed(55)
embedding, output = make_table(), make_table()
accumulator = torch.zeros_like(embedding)
opt = torch.optim.SGD([output], lr=0.1)
for step in range(5):
    words = torch.randperm(VOCAB)
    if step == 3:
        accumulator.zero_()
        words = words[words != 7]
    loss = cbow_loss(embedding, output, *windows(words))
    opt.zero_grad()
    loss.backward()
    adagrad_step(embedding, accumulator)
    opt.step()
print(f"cbow: last loss {loss.item():.4f}")
