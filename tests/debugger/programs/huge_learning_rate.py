"""A schedule with a wrong sign in its exponent: one update of the optimizer leaves the range of float32."""
import torch


def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-12)
    for step in range(4):
        loss = 1e10 * model(torch.ones(4, 2)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.param_groups[0]["lr"] = 1e-12 if step != 2 else 1e32
        optimizer.step()  # BUG
        print("step", step, "loss", loss.item())


torch.manual_seed(0)
train(torch.nn.Linear(2, 3))
print("the end")
