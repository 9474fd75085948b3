"""Tables with sparse gradients, which come last in the backward pass and lie in no storage of their own."""
import torch
from torch import nn

torch.manual_seed(0)
table, head = nn.EmbeddingBag(20000, 64, mode="sum", sparse=True), nn.Linear(64, 1)
first, second = torch.optim.SparseAdam(table.parameters(), lr=0.01), torch.optim.SGD(head.parameters(), lr=0.01)
for step in range(24):
    ids = torch.randint(0, 20000, (256, 64))
    loss = head(table(ids)).square().mean()
    first.zero_grad()
    second.zero_grad()
    loss.backward()
    second.step()
    first.step()
