"""Sentiment of reviews by a GRU; a collate function that looks words up and pads, in plain Python."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)
words = [f"word{number}" for number in range(500)]
numbers = {word: number + 1 for number, word in enumerate(words)}
reviews = [(" ".join(random.choice(words) for _ in range(random.randint(20, 40))), row % 2) for row in range(960)]


def collate(rows):
    ids = []
    for text, _ in rows:
        row = []
        for word in text.lower().replace(".", " . ").replace(",", " , ").split():
            row.append(numbers.get("".join(letter for letter in word if letter.isalnum()), 0))
        ids.append((row + [0] * 40)[:40])
    return torch.tensor(ids), torch.tensor([float(label) for _, label in rows])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(501, 16)
        self.gru = nn.GRU(16, 16, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, ids):
        return self.out(self.gru(self.words(ids))[0].mean(1)).squeeze(-1)


model = Reader()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ids, labels = collate(reviews)
loader = DataLoader(range(len(reviews)), batch_size=32, shuffle=True, collate_fn=lambda rows: (ids[rows], labels[rows]))
for epoch in range(3):
    for batch, label in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(batch), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"{loss.item():.3f}")
