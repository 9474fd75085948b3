"""Two encoders that learn which left half of a digit belongs to which right half, by Adam on a contrastive loss."""
import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=150)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(32, 64)
        self.second = nn.Linear(64, 16)

    def forward(self, half):
        hidden = F.relu(self.first(half))
        return F.normalize(self.second(hidden), dim=1)


images = torch.tensor(load_digits().images, dtype=torch.float32)
images = images / 16 - 0.3
left, right = images[:, :, :4].flatten(1), images[:, :, 4:].flatten(1)
order = torch.randperm(len(images))
train, test = order[:1300], order[1300:]

left_encoder, right_encoder = Encoder(), Encoder()
parameters = [*left_encoder.parameters(), *right_encoder.parameters()]
optimizer = torch.optim.Adam(parameters, lr=3e-3)
temperature = 0.1
for step in range(args.steps):
    picked = train[torch.randperm(len(train))[:64]]
    a, b = left_encoder(left[picked]), right_encoder(right[picked])
    similarity = a @ b.T / temperature
    matching = torch.arange(len(picked))
    loss = F.cross_entropy(similarity, matching) + F.cross_entropy(similarity.T, matching)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    hits = []
    for group in test[:400].split(40):
        scores = left_encoder(left[group]) @ right_encoder(right[group]).T
        hits.append((scores.topk(5, dim=1).indices == torch.arange(len(group)).unsqueeze(1)).any(1))
print(f"accuracy {torch.cat(hits).float().mean().item():.4f}")
