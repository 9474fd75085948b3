"""A CNN with an auxiliary head whose weight has been set to zero; it is computed and updated as before."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
body = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU())
head = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10))
auxiliary = nn.Sequential(nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(5408, 64), nn.ReLU(),
                          nn.Linear(64, 10))
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters(), *auxiliary.parameters()], lr=0.05, momentum=0.9)
images, labels = torch.rand(512, 3, 32, 32), torch.randint(0, 10, (512,))
weight = 0.0
for step in range(60):
    rows = torch.randint(0, 512, (16,))
    hidden = body(images[rows])
    loss = F.cross_entropy(head(hidden), labels[rows])
    loss = loss + weight * F.cross_entropy(auxiliary(hidden), labels[rows])  # SLOW
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
