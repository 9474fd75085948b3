"""A CNN trained on mixtures of images, whose weights come from numpy's beta distribution."""
import numpy
import torch
import torch.nn.functional as F
from torch import nn

rng = numpy.random.default_rng(0)
torch.manual_seed(0)
images = torch.rand(512, 3, 32, 32)
labels = torch.randint(0, 10, (512,))
model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
                      nn.Flatten(), nn.Linear(784, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(80):
    one, other = torch.randint(0, 512, (64,)), torch.randint(0, 512, (64,))
    weight = torch.from_numpy(rng.beta(0.4, 0.4, size=64)).float().view(-1, 1, 1, 1)
    mixed = weight * images[one] + (1 - weight) * images[other]
    output = model(mixed)
    flat = weight.flatten()
    loss = (flat * F.cross_entropy(output, labels[one], reduction="none")
            + (1 - flat) * F.cross_entropy(output, labels[other], reduction="none")).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
