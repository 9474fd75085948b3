"""A network with batch normalisation that tells breast cancers, from a table of standardised columns, by SGD."""
import argparse

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()
torch.manual_seed(args.seed)
torch.set_num_threads(1)

table, malignant = load_breast_cancer(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(table, malignant, test_size=0.3, random_state=args.seed)
scaler = StandardScaler().fit(x_train)
x_train = torch.tensor(scaler.transform(x_train), dtype=torch.float32)
x_test = torch.tensor(scaler.transform(x_test), dtype=torch.float32)
y_train = torch.tensor(y_train, dtype=torch.float32)
y_test = torch.tensor(y_test, dtype=torch.float32)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True, drop_last=True)


class Tabular(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(30, 32)
        self.norm = nn.BatchNorm1d(32)
        self.second = nn.Linear(32, 16)
        self.drop = nn.Dropout(0.2)
        self.last = nn.Linear(16, 1)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        x = torch.relu(self.second(x))
        return self.last(self.drop(x)).squeeze(1)


model = Tabular()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
done = 0
while done < args.steps:
    model.train()
    for features, target in loader:
        optimizer.zero_grad()
        logits = model(features)
        loss = criterion(logits, target)
        loss.backward()
        optimizer.step()
        done += 1
        if done >= args.steps:
            break

model.eval()
with torch.no_grad():
    accuracy = ((model(x_test) > 0).float() == y_test).float().mean()
print(f"accuracy {accuracy.item():.4f}")
