"""A convolutional network that reads handwritten digits, by Adam."""
import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=120)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.drop = nn.Dropout(0.1)
        self.fc1 = nn.Linear(16 * 4, 48)
        self.fc2 = nn.Linear(48, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(x, 2)
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.drop(torch.flatten(x, 1))
        x = F.relu(self.fc1(x))
        return self.fc2(x)


data = load_digits()
images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1)
images = (images - 4.9) / 6.0
labels = torch.tensor(data.target)
order = torch.randperm(len(images))
train_x, test_x = images[order[:1400]], images[order[1400:]]
train_y, test_y = labels[order[:1400]], labels[order[1400:]]

batch_size = 32
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
model.train()
for step in range(args.steps):
    picked = torch.randint(0, len(train_x), (batch_size,))
    optimizer.zero_grad()
    output = model(train_x[picked])
    loss = F.cross_entropy(output, train_y[picked])
    loss.backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    right = (model(test_x).argmax(dim=1) == test_y).float().mean()
print(f"accuracy {right.item():.4f}")
