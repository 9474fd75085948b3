"""A custom cube root whose backward divides by its own output, 0 for padded frames."""
# label: phase=backward mechanism=SING category=N3 category_alt=N2 birth_op=aten::div kind=+inf,-inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=custom_backward needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class CubeRoot(torch.autograd.Function):
    """sign(x) * |x| ** (1/3); only the output is saved."""

    @staticmethod
    def forward(ctx, x):
        y = x.sign() * x.abs().pow(1.0 / 3.0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad / (3.0 * y * y)  # BUG


class Compressor(nn.Module):
    """Projects spectra, compresses their range and reads them in order."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(10, 6, bias=False)
        self.cell = nn.GRU(6, 8, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, spectra):
        frames = CubeRoot.apply(self.project(spectra))
        _, state = self.cell(frames)
        return self.head(state[0])


torch.manual_seed(47)
model = Compressor().to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()
for step in range(4):
    spectra = 0.5 + torch.rand(4, 7, 10)
    labels = torch.tensor([0, 1, 0, 1])
    if step == 2:
        spectra[1, 5:] = 0.0  # a short recording, padded
    opt.zero_grad()
    loss = loss_fn(model(spectra.to(DEVICE)), labels.to(DEVICE))
    loss.backward()
    opt.step()
print(f"compressor: last loss {loss.item():.4f}")
