"""Adaptive clipping of fp16 gradients: the square of a gradient of 300 ends in the running norm."""
# label: phase=optimizer mechanism=OVF category=N8 category_alt=N5 birth_op=aten::pow,aten::mul,aten::square kind=+inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp16 model=linear family=half needs= fragile=no
import os

import torch

DEVICE = os.environ.get("DEVICE", "cpu")


class AdaptiveClip:
    """Rescales the gradient to the exponential average of its past norms."""

    def __init__(self, decay=0.9):
        self.decay = decay
        self.average = None

    @torch.no_grad()
    def __call__(self, params):
        squares = [p.grad.pow(2).sum() for p in params]  # BUG
        norm = torch.stack(squares).sum().sqrt()
        if self.average is None:
            self.average = norm.clone()
        self.average = self.decay * self.average + (1 - self.decay) * norm
        for p in params:
            p.grad.mul_(self.average / norm)
        return norm


def margin_loss(w, b, x, y):
    """Hinge: the gradient of a violated margin is the sample itself."""
    score = x @ w + b
    return torch.relu(1 - y * score).sum()


torch.manual_seed(16)
w = torch.zeros(6).half().to(DEVICE).requires_grad_()
b = torch.zeros(1).half().to(DEVICE).requires_grad_()
opt = torch.optim.SGD([w, b], lr=1e-3)
clip = AdaptiveClip()
x = torch.rand(6, 1, 6)
x[3, 0, 2] = -300.0  # one sensor reading in other units
labels = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
for xi, yi in zip(x, labels):
    loss = margin_loss(w, b, xi.half().to(DEVICE), yi)
    opt.zero_grad()
    loss.backward()
    clip([w, b])
    opt.step()
print("p73 loss", loss.item())
