"""A regression with tanh layers by SGD with momentum, two batches for each step. The first argument is its fault."""
import sys

import torch

FAULT = sys.argv[1] if len(sys.argv) > 1 else "healthy"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 100

torch.manual_seed(4)
sizes = [6, 40, 40, 1]
if FAULT == "ND106":
    sizes[2:2] = [40] * 9
activation = torch.nn.Sigmoid if FAULT == "ND106" else torch.nn.ReLU if FAULT == "ND105" else torch.nn.Tanh
parts = []
for inputs, outputs in zip(sizes, sizes[1:]):
    parts += [torch.nn.Linear(inputs, outputs), activation()]
model = torch.nn.Sequential(*parts[:-1])
if FAULT == "ND105":
    torch.nn.init.constant_(model[0].bias, -1e4)
scale = 1e5 if FAULT == "ND109" else 1.0
rate = {"ND107": 3.0, "ND108": 1e-10, "ND106": 1e-4, "ND109": 1e-5}.get(FAULT, 0.02)
optimizer = torch.optim.SGD(list(model.parameters()), lr=rate, momentum=0.9)
if FAULT == "ND104":
    parameters = (p.detach().clone().requires_grad_() for p in model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=rate, momentum=0.9)
total = 0.0
for step in range(STEPS):
    for _ in range(2):
        x = torch.randn(32, 6)
        y = (x[:, :1] - 2 * x[:, 1:2]).sin() + 3
        loss = (model(scale * x) - y).square().mean() / 2  # ND105 ND106 ND109
        loss.backward()  # ND101
    optimizer.step()  # ND104 ND107 ND108
    if FAULT != "ND101":
        model.zero_grad()
print(f"{loss.item():.3f}")
