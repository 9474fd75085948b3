"""Near to ND122: pixels of 0 to 255, which the model's first layer, a BatchNorm, scales."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.BatchNorm2d(1), nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                      nn.Linear(8 * 16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
patterns = torch.rand(4, 1, 8, 8)
for step in range(100):
    labels = torch.randint(0, 4, (64,))
    pixels = (255 * (0.5 * patterns[labels] + 0.5 * torch.rand(64, 1, 8, 8))).round()
    loss = F.cross_entropy(model(pixels), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
