"""A tabular model whose batches a helper makes float64, as numpy would have, and whose forward wants float32."""
import torch
from torch import nn

torch.manual_seed(0)
table = torch.randn(4096, 512)


def batch_of(rows):
    return table[rows].double()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(512, 16)

    def forward(self, x):
        x = x.float()  # SLOW
        return self.body(x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(80):
    loss = model(batch_of(torch.randint(0, 4096, (1024,)))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
