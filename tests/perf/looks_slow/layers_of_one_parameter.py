"""Layers whose weights are slices of one parameter: each layer reads what the one before has made. And a relaxation in
place, whose rows need their neighbours."""
import torch
from torch import nn

torch.manual_seed(0)
weights, biases = nn.Parameter(torch.randn(24, 16, 16) / 4), nn.Parameter(torch.zeros(24, 16))
optimizer = torch.optim.SGD([weights, biases], lr=0.01)
for step in range(24):
    x = torch.randn(32, 16)
    y = x
    for layer in range(24):
        y = torch.tanh(y @ weights[layer] + biases[layer])
    normed = y
    for layer in range(24):
        normed = normed + torch.tanh(normed) * biases[layer]
    rows = torch.randn(26, 32)
    for row in range(1, 25):
        rows[row] = 0.5 * (rows[row - 1] + rows[row + 1])
    loss = (normed - x + rows[1:2, :16].mean()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
