"""Instance normalisation written without an epsilon; a flat image has deviation 0."""
# label: phase=forward mechanism=DIV0 category=N7 category_alt=N2,N1 birth_op=aten::div kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=conv family=div0 needs= fragile=no
import os

import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")


class InstanceNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.beta = nn.Parameter(torch.zeros(1, channels, 1, 1))

    def forward(self, x):
        mu = x.mean(dim=(2, 3), keepdim=True)
        sigma = x.std(dim=(2, 3), keepdim=True)
        return self.gamma * ((x - mu) / sigma) + self.beta  # BUG


class StyleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = InstanceNorm(3)
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(8, 3, 3, padding=1),
        )

    def forward(self, x):
        return torch.sigmoid(self.body(self.stem(x)))


def photo_batches(n):
    for i in range(n):
        photos = torch.rand(4, 3, 8, 8)
        if i == 2:
            photos[1] = 0.5  # lens cap: every pixel the same grey
        yield photos


torch.manual_seed(16)
net = StyleNet().to(DEVICE)
opt = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.5, 0.999))
for photos in photo_batches(4):
    photos = photos.to(DEVICE)
    loss = nn.functional.l1_loss(net(photos), photos)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"l1 loss: {loss.item():.4f}")
