"""RMSprop with eps=0 meets an auxiliary head whose loss weight ramps up from exactly 0."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt=N2 birth_op=aten::addcdiv_,aten::_foreach_addcdiv_,aten::_foreach_div_ kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=optimizer_eps needs= fragile=no
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
AUX_START = 2


class AuxNet(nn.Module):
    """A small image classifier with a second head on its middle features."""

    def __init__(self, classes=3):
        super().__init__()
        self.stem = nn.Conv2d(1, 6, 3, stride=2)
        self.body = nn.Conv2d(6, 8, 3)
        self.head = nn.Linear(8, classes)
        self.aux = nn.Linear(6, classes)

    def forward(self, image, with_aux):
        middle = F.silu(self.stem(image))
        logits = self.head(F.silu(self.body(middle)).mean(dim=(2, 3)))
        return logits, self.aux(middle.mean(dim=(2, 3))) if with_aux else None


def aux_weight(step, ramp=4):
    """0 in the first step of the ramp, 0.4 at its end."""
    return 0.4 * min(1.0, (step - AUX_START) / ramp)


torch.manual_seed(54)
model = AuxNet().to(DEVICE)
opt = torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, eps=0.0)
for step in range(5):
    images, labels = torch.randn(12, 1, 9, 9).to(DEVICE), torch.arange(12, device=DEVICE) % 3
    logits, aux = model(images, with_aux=step >= AUX_START)
    loss = F.cross_entropy(logits, labels)
    if aux is not None:
        loss = loss + aux_weight(step) * F.cross_entropy(aux, labels)
    opt.zero_grad()
    loss.backward()
    opt.step()  # BUG
print(f"two heads: last loss {loss.item():.4f}")
