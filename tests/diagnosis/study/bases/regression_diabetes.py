"""A regression of the progress of diabetes on ten measurements, by Adam; figures are in standard deviations."""
import argparse

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=120)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

bunch = load_diabetes(scaled=False)
x = torch.tensor(bunch.data, dtype=torch.float32)
y = torch.tensor(bunch.target, dtype=torch.float32)
order = torch.randperm(len(x))
train, test = order[:330], order[330:]
x = (x - x[train].mean(0)) / x[train].std(0)
y = (y - y[train].mean()) / y[train].std()


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(10, 24)
        self.middle = nn.Linear(24, 12)
        self.outer = nn.Linear(12, 1)

    def forward(self, features):
        hidden = F.relu(self.inner(features))
        hidden = F.relu(self.middle(hidden))
        return self.outer(hidden)[:, 0]


model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
for step in range(args.steps):
    rows = train[torch.randint(0, len(train), (32,))]
    predicted = model(x[rows])
    loss = F.mse_loss(predicted, y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    error = F.mse_loss(model(x[test]), y[test]).sqrt()
print(f"error {error.item():.4f}")
