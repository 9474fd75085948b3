"""An autoencoder of handwritten digits with a narrow middle, by Adam on the squared error."""
import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 12))
        self.decode = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 64))

    def forward(self, x):
        code = self.encode(x)
        return torch.sigmoid(self.decode(code))


pixels = torch.tensor(load_digits().data, dtype=torch.float32)
pixels = pixels / 16
order = torch.randperm(len(pixels))
train, test = pixels[order[:1400]], pixels[order[1400:]]
net = AutoEncoder()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
mse = nn.MSELoss()
for step in range(args.steps):
    batch = train[torch.randint(0, len(train), (64,))]
    target = batch
    rebuilt = net(batch)
    loss = mse(rebuilt, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

net.eval()
with torch.no_grad():
    error = (net(test) - test).square().mean().sqrt()
print(f"error {error.item():.4f}")
