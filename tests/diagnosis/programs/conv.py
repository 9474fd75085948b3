"""A convolutional classifier of small pictures by Adam. The first argument is the fault that it has."""
import sys

import torch
from torch import nn

FAULT = sys.argv[1] if len(sys.argv) > 1 else "healthy"
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 100


def pictures(count):
    """A bright square in one of four corners, and which."""
    corner = torch.randint(0, 4, (count,))
    images = 0.3 * torch.randn(count, 1, 12, 12)
    for image, place in zip(images, corner.tolist()):
        row, column = 6 * (place // 2), 6 * (place % 2)
        image[0, row:row + 6, column:column + 6] += 1.0
    return images, corner


torch.manual_seed(2)
act = nn.Tanh() if FAULT == "ND109" else nn.ReLU()
layers = [nn.Conv2d(1, 8, 3, padding=1), act, nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(),
          nn.Flatten(), nn.Linear(16 * 36, 4)]
if FAULT == "ND106":
    layers[5:6] = [nn.Flatten(), *[part for _ in range(8) for part in (nn.Linear(576, 576), nn.Sigmoid())]]
if FAULT == "ND102":
    layers.append(nn.Softmax(dim=1))
model = nn.Sequential(*layers)
if FAULT == "ND105":
    nn.init.constant_(model[0].bias, -50.0)
if FAULT == "ND109":
    nn.init.normal_(model[0].weight, std=500.0)
criterion = nn.NLLLoss() if FAULT == "ND103" else nn.CrossEntropyLoss()
rate = {"ND107": 30.0, "ND108": 1e-12, "ND109": 1e-7, "ND106": 1e-5}.get(FAULT, 3e-3)
trained = nn.Sequential(*[nn.Linear(4, 4)]) if FAULT == "ND104" else model
optimizer = torch.optim.Adam(trained.parameters(), lr=rate)
for step in range(STEPS):
    images, corner = pictures(32)
    loss = criterion(model(images), corner)  # ND102 ND103 ND105 ND106 ND109
    if FAULT != "ND101":
        model.zero_grad(set_to_none=False)
    loss.backward()  # ND101
    optimizer.step()  # ND104 ND107 ND108
print(f"{loss.item():.3f}")
