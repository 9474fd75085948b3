"""A GRU that reads digits row by row; log-probabilities and RMSprop."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=150)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 40, batch_first=True)
        self.norm = nn.LayerNorm(40)
        self.hidden = nn.Linear(40, 32)
        self.head = nn.Linear(32, 10)

    def forward(self, rows):
        _, last = self.gru(rows)
        x = self.norm(last[0])
        x = F.relu(self.hidden(x))
        return F.log_softmax(self.head(x), dim=1)


digits = load_digits()
rows = torch.tensor(digits.images / 16.0, dtype=torch.float32)
classes = torch.tensor(digits.target)
order = torch.randperm(len(rows))
train, test = order[:1300], order[1300:]

reader = Reader()
optimizer = torch.optim.RMSprop(reader.parameters(), lr=2e-3)
for step in range(args.steps):
    chosen = train[torch.randint(0, len(train), (64,))]
    target = classes[chosen]
    optimizer.zero_grad()
    scores = reader(rows[chosen])
    loss = F.nll_loss(scores, target)
    loss.backward()
    optimizer.step()

reader.eval()
with torch.no_grad():
    accuracy = (reader(rows[test]).argmax(1) == classes[test]).float().mean()
print(f"accuracy {accuracy.item():.4f}")
