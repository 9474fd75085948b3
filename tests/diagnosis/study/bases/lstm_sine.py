"""An LSTM that foretells the next value of noisy sine waves, by Adam with clipped gradients."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=150)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


def waves(count):
    """Windows of 16 values, and the value after each."""
    times = torch.arange(17.0) * (0.2 + 0.3 * torch.rand(count, 1)) + 6.28 * torch.rand(count, 1)
    values = torch.sin(times) + 0.02 * torch.randn(count, 17)
    return values[:, :16].unsqueeze(2), values[:, 16:]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.mix = nn.Linear(24, 24)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        states, _ = self.lstm(x)
        hidden = torch.tanh(self.mix(states[:, -1]))
        return self.out(hidden)


train_x, train_y = waves(600)
test_x, test_y = waves(300)
model = Forecaster()
loss_fn = nn.MSELoss()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(args.steps):
    index = torch.randint(0, len(train_x), (32,))
    prediction = model(train_x[index])
    loss = loss_fn(prediction, train_y[index])
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()

with torch.no_grad():
    error = (model(test_x) - test_y).pow(2).mean().sqrt()
print(f"error {error.item():.4f}")
