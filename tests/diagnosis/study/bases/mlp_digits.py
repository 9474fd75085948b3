"""A perceptron that reads handwritten digits, by SGD with momentum over a loader."""
import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=150)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

pixels, digits = load_digits(return_X_y=True)
images = torch.tensor(pixels, dtype=torch.float32) / 16.0
labels = torch.tensor(digits)
order = torch.randperm(len(images))
train, test = order[:1400], order[1400:]
targets = labels[train]
loader = DataLoader(TensorDataset(images[train], targets), batch_size=64, shuffle=True)

model = nn.Sequential(
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

step = 0
while step < args.steps:
    for batch, target in loader:
        output = model(batch)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step == args.steps:
            break

model.eval()
with torch.no_grad():
    right = (model(images[test]).argmax(1) == labels[test]).float().mean()
print(f"accuracy {right.item():.4f}")
