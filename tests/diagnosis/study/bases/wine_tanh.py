"""A network of tanh layers that tells three wines apart, on all rows at once, by Adagrad."""
import argparse

import numpy as np
import torch
from sklearn.datasets import load_wine
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

wine = load_wine()
order = np.random.default_rng(args.seed).permutation(len(wine.data))
features, kinds = wine.data[order], wine.target[order]
mean, spread = features[:120].mean(0), features[:120].std(0)
features = (features - mean) / spread
inputs = torch.from_numpy(features[:120]).float()
target = torch.from_numpy(kinds[:120])
held_inputs, held_target = torch.from_numpy(features[120:]).float(), torch.from_numpy(kinds[120:])

net = nn.Sequential()
net.add_module("input", nn.Linear(13, 16))
net.add_module("tanh1", nn.Tanh())
net.add_module("inner", nn.Linear(16, 16))
net.add_module("tanh2", nn.Tanh())
net.add_module("output", nn.Linear(16, 3))
loss_function = nn.CrossEntropyLoss()
optimizer = torch.optim.Adagrad(net.parameters(), lr=0.03)

for step in range(args.steps):
    optimizer.zero_grad()
    scores = net(inputs)
    loss = loss_function(scores, target)
    loss.backward()
    optimizer.step()

net.eval()
with torch.no_grad():
    accuracy = (net(held_inputs).argmax(1) == held_target).float().mean()
print(f"accuracy {accuracy.item():.4f}")
