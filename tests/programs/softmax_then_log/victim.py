"""A classifier with a hand-written cross-entropy: softmax first, logarithm second.

In the fourth batch one sample is scaled as raw counts. Its logits lie hundreds apart, the softmax of the
lower ones is exactly 0 in float32, log(0) is -inf and 0 * -inf in the sum over classes is NaN.
"""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
nn.init.eye_(model.weight)
nn.init.zeros_(model.bias)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = torch.rand(6, 8, 4)
batches[3, 1] = torch.tensor([400.0, 0.0, 0.0, 1.0])
labels = torch.randint(0, 3, (6, 8))
labels[3, 1] = 0
for step, x in enumerate(batches):
    onehot = nn.functional.one_hot(labels[step], 3).float()
    probabilities = model(x).softmax(1)
    log_probabilities = probabilities.log()  # BUG
    loss = -(onehot * log_probabilities).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.3f}")
