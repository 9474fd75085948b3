"""Progressive resizing in fp16: a hand-written mean sums more than 65504 pixels of value one."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N2 birth_op=aten::sum kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp16 model=cnn family=half needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def global_average(x):
    """Mean over height and width of (batch, channels, height, width)."""
    pixels = x.shape[-1] * x.shape[-2]
    return x.sum(dim=(-1, -2)) / pixels  # BUG


class TinyClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Parameter(torch.ones(4, 3) / 3)
        self.head = nn.Linear(4, 2)

    def forward(self, images):
        pooled = global_average(images)
        return self.head(torch.relu(pooled @ self.mix.t()))


torch.manual_seed(13)
net = TinyClassifier().half().to(DEVICE)
opt = torch.optim.SGD(net.parameters(), lr=1e-2)
for size in (64, 128, 288, 288):
    images = torch.ones(2, 3, size, size)  # white scans; 288 * 288 > 65504
    images[0, :, ::2] = 0.5
    labels = torch.tensor([0, 1]).to(DEVICE)
    logits = net(images.half().to(DEVICE))
    loss = nn.functional.cross_entropy(logits.float(), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p70 loss", loss.item())
