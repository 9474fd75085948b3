"""A NaN gets into the loss. With an argument the program catches what is raised and tells of it."""
import sys

import torch


def loss_of(model, x):
    growth = torch.log(model(x) - 100)  # BUG
    return growth.pow(2).mean()


def train():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    for _ in range(2):
        loss = loss_of(model, torch.ones(3, 4))
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad


try:
    train()
except RuntimeError as error:
    if len(sys.argv) < 2:
        raise
    from _numsan import NumericalError
    finding = error.finding
    print(isinstance(error, NumericalError), finding["code"], finding["escape"]["into"], finding["location"]["line"])
    print(tuple(error.inputs[0].shape), float(error.inputs[0].max()) < 0, bool(error.outputs[0].isnan().all()))
