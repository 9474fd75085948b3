"""A new head on a CNN that stays as it is: it is left out of the optimizer, and nothing else."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten())
head = nn.Linear(32, 10)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
images, labels = torch.rand(512, 3, 32, 32), torch.randint(0, 10, (512,))
for step in range(60):
    rows = torch.randint(0, 512, (32,))
    output = head(backbone(images[rows]))
    loss = F.cross_entropy(output, labels[rows])
    optimizer.zero_grad()
    backbone.zero_grad()
    loss.backward()  # SLOW
    optimizer.step()
print(f"{loss.item():.3f}")
