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
    for step in range(4):
        loss = head(torch.full((4, 2), 1.0 if step < 2 else -1.0)).mean()
        head.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in head.parameters():
                p -= 0.01 * p.grad
        print("step", step, "loss", loss.item())


torch.manual_seed(0)
train()
print("the end")
