"""A pooling autoencoder that pads with minus infinity, so that padding never wins a window."""
# label: tempts=padding max_severity=none dtype=fp32 needs=
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class PoolAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Conv2d(1, 8, 3, padding=1)
        self.middle = nn.Conv2d(8, 8, 1)
        self.decode = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, image):
        hidden = F.leaky_relu(self.encode(image))
        height, width = hidden.shape[-2:]
        padded = F.pad(hidden, (0, width % 2, 0, height % 2), value=float("-inf"))
        pooled, where = F.max_pool2d(padded, 2, return_indices=True)
        wide = F.max_unpool2d(self.middle(pooled), where, 2, output_size=padded.shape[-2:])
        return self.decode(wide[..., :height, :width])


torch.manual_seed(14)
model = PoolAutoencoder().to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for size in (8, 9, 11, 10, 7):
    image = torch.rand(4, 1, size, size).to(DEVICE)
    loss = F.mse_loss(model(image), image)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"max unpool: loss {loss.item():.4f}")
