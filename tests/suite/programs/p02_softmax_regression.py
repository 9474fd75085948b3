"""Softmax regression on digits, cross-entropy as -sum(y * log(softmax)), pixels in 0..255."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2,N1,N8 birth_op=aten::log kind=-inf first_step=1
# label: severity=error loss_stays_finite=no dtype=fp32 model=logreg family=log needs= fragile=no
import os

import torch
import torch.nn.functional as F

DEVICE = os.environ.get("DEVICE", "cpu")
PIXELS, DIGITS, BATCH = 64, 10, 40


def digit_prototypes():
    """Every digit lights its own band of pixels at full brightness."""
    images = torch.zeros(DIGITS, PIXELS)
    for digit in range(DIGITS):
        images[digit, 6 * digit:6 * digit + 6] = 255.0
    return images


def main():
    torch.manual_seed(2)
    images = digit_prototypes()
    w = torch.zeros(PIXELS, DIGITS).to(DEVICE).requires_grad_()
    b = torch.zeros(DIGITS).to(DEVICE).requires_grad_()
    train_step = torch.optim.SGD([w, b], lr=0.5)

    for _ in range(4):
        labels = torch.arange(BATCH) % DIGITS
        noise = torch.randint(0, 4, (BATCH, PIXELS)).float()
        x = (images[labels] + noise).to(DEVICE)
        y_true = F.one_hot(labels, DIGITS).float().to(DEVICE)

        y = F.softmax(x @ w + b, dim=1)  # PRE
        cross_entropy = -torch.sum(y_true * torch.log(y), dim=1).mean()  # BUG
        train_step.zero_grad()
        cross_entropy.backward()
        train_step.step()
    print("cross entropy after training: %.3f" % cross_entropy.item())


main()
