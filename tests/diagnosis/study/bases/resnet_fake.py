"""A small ResNet that tells which way stripes run over torchvision's fake pictures, by SGD and a cosine schedule."""
import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torchvision.datasets import FakeData
from torchvision.transforms.functional import to_tensor

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=80)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def pictures(count, offset):
    """Noise with stripes of one of four directions."""
    fake = FakeData(size=count, image_size=(3, 12, 12), num_classes=4, random_offset=offset)
    noise = torch.stack([to_tensor(picture) for picture, _ in fake])
    directions = torch.randint(0, 4, (count,))
    rows, columns = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    waves = torch.stack([rows, columns, (rows + columns) / 1.4, (rows - columns) / 1.4])
    stripes = torch.sin(1.6 * waves[directions] + 6.28 * torch.rand(count, 1, 1))
    return (noise - 0.5) * 2.0 + stripes.unsqueeze(1), directions


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if inputs != outputs else nn.Identity()

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + self.skip(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 1, 1)
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2), Block(16, 16, 1))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        features = self.blocks(F.relu(self.stem(x)))
        return self.head(features.mean((2, 3)))


train_x, train_y = pictures(320, 0)
test_x, test_y = pictures(200, 5000)
net = ResNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(args.steps, 1))
net.train()
for step in range(args.steps):
    picked = torch.randint(0, len(train_x), (32,))
    logits = net(train_x[picked])
    loss = F.cross_entropy(logits, train_y[picked])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()

net.eval()
with torch.no_grad():
    right = (net(test_x).argmax(1) == test_y).float().mean()
print(f"accuracy {right.item():.4f}")
