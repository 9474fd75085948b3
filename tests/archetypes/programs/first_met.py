"""A value of a batch goes bad before any parameter is read: what it first meets says whose it is."""
import torch
import torch.nn.functional as F
from torch import nn


def votes_of(item_without):
    votes = torch.randint(1, 4, (8, 3)).float()
    if item_without:
        votes[3] = 0
    return votes


def target_shares():
    """Soft labels are shares of votes, prepared in the training loop; an item that has none is 0 / 0."""
    # expect: op=aten::div phase=forward kind=nan mechanism=DIV0 category=N4,N1,N2 step=2
    model = nn.Linear(5, 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        votes = votes_of(i == 2)
        shares = votes / votes.sum(1, keepdim=True)  # BUG
        loss = F.cross_entropy(model(torch.randn(8, 5)), shares)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


def target_shares_of_some():
    """The same with at least one vote to divide by."""
    # expect: nothing
    model = nn.Linear(5, 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        votes = votes_of(i == 2)
        shares = votes / votes.sum(1, keepdim=True).clamp(min=1)
        loss = F.cross_entropy(model(torch.randn(8, 5)), shares)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


class Tabular(nn.Module):
    """Columns of numbers join the embedding of a category."""

    def __init__(self):
        super().__init__()
        self.kinds = nn.Embedding(5, 4)
        self.out = nn.Linear(4 + 3, 1)

    def forward(self, kind, numbers):
        return self.out(torch.cat([self.kinds(kind), numbers], dim=1))


def constant_column():
    """A column that is the same in all rows has no deviation; the numbers join an embedding before any layer."""
    # expect: op=aten::div phase=data kind=nan mechanism=DIV0 category=N1 step=2
    model = Tabular()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        rows = torch.randn(8, 3)
        if i == 2:
            rows[:, 1] = 2.0
        numbers = (rows - rows.mean(0)) / rows.std(0)  # BUG
        loss = (model(torch.randint(0, 5, (8,)), numbers) - torch.randn(8, 1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


def constant_column_with_a_floor():
    """The same with a least deviation."""
    # expect: nothing
    model = Tabular()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        rows = torch.randn(8, 3)
        if i == 2:
            rows[:, 1] = 2.0
        numbers = (rows - rows.mean(0)) / rows.std(0).clamp(min=1e-3)
        loss = (model(torch.randint(0, 5, (8,)), numbers) - torch.randn(8, 1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


def advantages():
    """Returns that are all the same have no deviation: the advantages are 0 / 0."""
    # expect: op=aten::div phase=forward kind=nan mechanism=DIV0 category=N4,N2,N5 step=2
    policy = nn.Linear(4, 2)
    opt = torch.optim.Adam(policy.parameters(), lr=0.01)
    for i in range(4):
        chosen = torch.randint(0, 2, (16,))
        returns = torch.ones(16) if i == 2 else torch.rand(16)
        advantage = (returns - returns.mean()) / returns.std()  # BUG
        probability = F.log_softmax(policy(torch.randn(16, 4)), -1)[torch.arange(16), chosen]
        loss = -(probability * advantage).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


def advantages_with_epsilon():
    """The same with an epsilon beside the deviation."""
    # expect: nothing
    policy = nn.Linear(4, 2)
    opt = torch.optim.Adam(policy.parameters(), lr=0.01)
    for i in range(4):
        chosen = torch.randint(0, 2, (16,))
        returns = torch.ones(16) if i == 2 else torch.rand(16)
        advantage = (returns - returns.mean()) / (returns.std() + 1e-8)
        probability = F.log_softmax(policy(torch.randn(16, 4)), -1)[torch.arange(16), chosen]
        loss = -(probability * advantage).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


def rate_after_the_last_step():
    """A schedule that is a tensor divides by the steps that are left: none at the end."""
    # expect: op=aten::reciprocal,aten::div phase=optimizer kind=inf mechanism=DIV0 category=N5 step=3
    weight = torch.randn(4, requires_grad=True)
    left = torch.tensor(3.0)
    for _ in range(5):
        rate = 0.1 / left  # BUG
        loss = (torch.randn(8, 4) @ weight - 1).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            weight -= rate * weight.grad
            weight.grad = None
        left = left - 1
    return weight


def rate_that_stays():
    """The same with one step left for ever."""
    # expect: nothing
    weight = torch.randn(4, requires_grad=True)
    left = torch.tensor(3.0)
    for _ in range(5):
        rate = 0.1 / left.clamp(min=1)
        loss = (torch.randn(8, 4) @ weight - 1).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            weight -= rate * weight.grad
            weight.grad = None
        left = left - 1
    return weight


def batch_by_its_range():
    """A column of the batch is the same in every row: its range is zero, and the model is fed with 0 / 0."""
    # expect: op=aten::div phase=data kind=nan mechanism=DIV0 category=N1,N2 step=2
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        batch = torch.randn(16, 4)
        if i == 2:
            batch[:, 1] = 5
        low, high = batch.amin(0), batch.amax(0)
        loss = model((batch - low) / (high - low)).pow(2).mean()  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


def batch_by_its_range_or_one():
    """The same with a range of one where there is none."""
    # expect: nothing
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(4):
        batch = torch.randn(16, 4)
        if i == 2:
            batch[:, 1] = 5
        low, high = batch.amin(0), batch.amax(0)
        spread = high - low
        loss = model((batch - low) / torch.where(spread > 0, spread, 1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss
