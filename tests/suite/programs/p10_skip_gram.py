"""Skip-gram as exp(score) / sum with hand-written updates; two words score above 88.7."""
# label: phase=forward mechanism=OVF category=N2 category_alt=N4 birth_op=aten::exp kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=embedding family=exp needs= fragile=no
import os

import torch

DEVICE = os.environ.get("DEVICE", "cpu")
WORDS, DIM, LR = 30, 16, 0.05


def make_tables():
    """Centre and context vectors, warm-started; the two stop words have long vectors."""
    generator = torch.Generator().manual_seed(10)
    centre = 0.1 * torch.randn(WORDS, DIM, generator=generator)
    context = 0.1 * torch.randn(WORDS, DIM, generator=generator)
    centre[0], context[1] = 3.0, 3.0
    return centre.to(DEVICE).requires_grad_(), context.to(DEVICE).requires_grad_()


def windows():
    """(centre, context) pairs of four sentences; the third holds the stop words side by side."""
    yield [2, 3, 4], [5, 6, 7]
    yield [8, 9, 10], [11, 12, 2]
    yield [13, 0, 14], [15, 1, 16]
    yield [17, 18, 2], [19, 3, 20]


def sgd(tables, lr):
    with torch.no_grad():
        for table in tables:
            table -= lr * table.grad
            table.grad = None


centre, context = make_tables()
for inputs, outputs in windows():
    inputs, outputs = torch.tensor(inputs).to(DEVICE), torch.tensor(outputs).to(DEVICE)
    scores = centre[inputs] @ context.t()
    e = torch.exp(scores)  # BUG
    prob = e.gather(1, outputs[:, None]) / e.sum(dim=1, keepdim=True)
    loss = -prob.log().mean()
    loss.backward()
    sgd((centre, context), LR)

print("skip-gram loss %.4f" % loss.item())
