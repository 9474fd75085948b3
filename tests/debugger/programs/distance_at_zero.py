"""The distance of a prediction to a target that it meets has no gradient."""
import torch


def distance(prediction, target):
    return (prediction - target).square().sum(-1).sqrt().mean()  # FORWARD


def train(model):
    for step in range(4):
        x = torch.full((4, 2), 0.0 if step == 2 else 1.0)
        loss = distance(model(x), torch.zeros(4, 3))
        model.zero_grad()
        loss.backward()  # BUG
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
        print("step", step, "loss", loss.item())


torch.manual_seed(0)
train(torch.nn.Linear(2, 3, bias=False))
print("the end")
