"""A learned sparse coder (LISTA) whose pruned atoms have an infinite threshold."""
# label: tempts=threshold max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def soft_threshold(x, threshold):
    return torch.sign(x) * torch.relu(x.abs() - threshold)


class Lista(nn.Module):
    def __init__(self, signal, atoms, layers=3):
        super().__init__()
        self.layers = layers
        self.dictionary = nn.Parameter(torch.randn(atoms, signal) / signal ** 0.5)
        self.raw_threshold = nn.Parameter(torch.full((atoms,), -2.0))
        self.register_buffer("pruned", torch.zeros(atoms, dtype=torch.bool))

    def forward(self, signal):
        threshold = nn.functional.softplus(self.raw_threshold)
        threshold = threshold.masked_fill(self.pruned, float("inf"))
        code = soft_threshold(signal @ self.dictionary.t(), threshold)
        for _ in range(self.layers):
            residual = signal - code @ self.dictionary
            code = soft_threshold(code + 0.2 * residual @ self.dictionary.t(), threshold)
        return code @ self.dictionary, code


torch.manual_seed(16)
model = Lista(signal=12, atoms=20).to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(6):
    signal = torch.randn(16, 12).to(DEVICE)
    rebuilt, code = model(signal)
    loss = (rebuilt - signal).square().mean() + 1e-2 * code.abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step == 2:
        model.pruned |= code.abs().mean(0) < code.abs().mean()  # the rarely used half
print(f"lista: {int(model.pruned.sum())} of 20 atoms pruned, loss {loss.item():.3f}")
