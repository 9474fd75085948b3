"""A transformer encoder that names the most frequent token of a sequence, by AdamW with a warm-up."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=150)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)
TOKENS, LENGTH, WIDTH = 6, 13, 24


def sequences(count):
    """Random tokens with one that is there more often than any other."""
    most = torch.randint(0, TOKENS, (count,))
    tokens = torch.randint(0, TOKENS, (count, LENGTH))
    planted = torch.rand(count, LENGTH) < 0.4
    tokens = torch.where(planted, most.unsqueeze(1), tokens)
    counts = nn.functional.one_hot(tokens, TOKENS).sum(1)
    return tokens, counts.argmax(1)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(TOKENS, WIDTH)
        self.place = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 48, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.pool = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, tokens):
        x = self.embed(tokens) + self.place
        x = self.encoder(x).mean(dim=1)
        x = torch.relu(self.pool(x))
        return self.head(x)


model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
model.train()
for step in range(args.steps):
    tokens, answers = sequences(48)
    logits = model(tokens)
    loss = criterion(logits, answers)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    scheduler.step()

model.eval()
tokens, answers = sequences(400)
with torch.no_grad():
    accuracy = (model(tokens).argmax(-1) == answers).float().mean()
print(f"accuracy {accuracy.item():.4f}")
