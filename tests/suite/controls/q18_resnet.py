"""A small ResNet as everybody trains it: zero-initialised branches, dead units, black frames."""
# label: tempts=zeros max_severity=none dtype=fp32 needs=
import os

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class Block(nn.Module):
    def __init__(self, width_in, width_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width_out, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width_out)
        self.conv2 = nn.Conv2d(width_out, width_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width_out)
        self.short = nn.Identity()
        if stride != 1 or width_in != width_out:
            conv = nn.Conv2d(width_in, width_out, 1, stride, bias=False)
            self.short = nn.Sequential(conv, nn.BatchNorm2d(width_out))
        nn.init.zeros_(self.bn2.weight)

    def forward(self, x):
        hidden = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(hidden)) + self.short(x))


def resnet(classes):
    stem = [nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()]
    blocks = [Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(32, classes))


torch.manual_seed(18)
model = resnet(4).to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
for step in range(4):
    images = torch.rand(8, 3, 16, 16)
    images[step] = 0.0  # a black frame
    images, labels = images.to(DEVICE), torch.randint(4, (8,)).to(DEVICE)
    loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
    opt.zero_grad()
    loss.backward()
    opt.step()
model.eval()
with torch.no_grad():
    accuracy = (model(images).argmax(1) == labels).float().mean()
print(f"resnet: loss {loss.item():.3f}, accuracy {accuracy.item():.2f}")
