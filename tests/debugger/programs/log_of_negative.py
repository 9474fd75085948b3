"""A head takes the logarithm of a rate that is negative from step 2 on, in a training."""
import torch


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = torch.nn.Linear(2, 1)

    def forward(self, x):
        rate = self.rate(x)
        return torch.log(rate)  # BUG


def train():
    head = Head()
    torch.nn.init.ones_(head.rate.weight)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
    for step in range(4):
        loss = head(torch.full((4, 2), 1.0 if step < 2 else -1.0)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, "loss", loss.item())


torch.manual_seed(0)
train()
print("the end")
