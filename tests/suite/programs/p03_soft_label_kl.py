"""KL loss to smoothed labels whose smoothing decays to 0: the entropy term becomes 0 * log 0."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2,N5 birth_op=aten::log kind=-inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=log needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
CLASSES = 5


class SoftLabelKL(nn.Module):
    """KL(targets || softmax(logits)), averaged over the batch."""

    def forward(self, logits, targets):
        log_q = logits.log_softmax(dim=-1)
        log_t = targets.log()  # BUG
        return (targets * (log_t - log_q)).sum(dim=-1).mean()


class SmoothingSchedule:
    """Label smoothing that starts at 0.1 and is switched off after two epochs."""

    def __init__(self, start=0.1, epochs=2):
        self.start, self.epochs = start, epochs

    def __call__(self, labels, epoch):
        eps = self.start * max(0.0, 1.0 - epoch / self.epochs)
        hard = torch.eye(CLASSES)[labels]
        return hard * (1 - eps) + eps / CLASSES


torch.manual_seed(3)
net = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, CLASSES)).to(DEVICE)
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
criterion = SoftLabelKL()
smooth = SmoothingSchedule()
inputs = torch.randn(48, 12)
labels = torch.randint(0, CLASSES, (48,))

history = []
for epoch in range(4):
    targets = smooth(labels, epoch).to(DEVICE)
    loss = criterion(net(inputs.to(DEVICE)), targets)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    history.append(loss.detach())

print("kl per epoch:", [round(v, 3) for v in torch.stack(history).tolist()])
