"""Integers that wrap around, and what becomes of them as floats; and integers that only look like it."""
import torch
from torch import nn


def train(model, opt, batches, weigh):
    """One step a batch; `weigh` says what an error counts."""
    for batch in batches:
        loss = (weigh(batch) * (model(torch.ones(4, 3)) - 1).square()).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.weight


def area_of_large_boxes():
    """The area of a box of 50000 pixels a side does not fit int32, and its root has no place in a loss."""
    # expect: op=aten::sqrt phase=data,forward kind=nan mechanism=DOM category=N8 step=2
    model = nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    sides = [torch.tensor([side, 100], dtype=torch.int32) for side in (200, 400, 50000, 300)]

    def weigh(side):
        area = side * side
        return torch.sqrt(area.float()).mean()  # BUG

    return train(model, opt, sides, weigh)


def levels_as_bytes():
    """Loudness in int8 without a clamp: 150 comes out negative, and its logarithm is asked for."""
    # expect: op=aten::log phase=data,forward kind=nan mechanism=DOM category=N8 step=2
    model = nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    levels = [torch.tensor([top, 20.0]) for top in (60.0, 100.0, 150.0, 70.0)]

    def weigh(level):
        code = level.to(torch.int8)
        return torch.log(code.float()).mean()  # BUG

    return train(model, opt, levels, weigh)


def counter_in_a_byte():
    """A counter of uint8 comes round to zero, and something is divided by it."""
    # expect: op=aten::div,aten::reciprocal phase=data,forward kind=inf mechanism=DIV0 category=N8 step=2
    model = nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    seen = torch.tensor([253], dtype=torch.uint8)

    def weigh(batch):
        seen.add_(1)
        return batch / seen  # BUG

    return train(model, opt, [torch.ones(1)] * 4, weigh)


def times_from_gaps():
    """Milliseconds between events are summed up in int32."""
    # expect: op=aten::sqrt phase=data,forward kind=nan mechanism=DOM category=N8 step=2
    model = nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    gaps = [torch.full((4,), gap, dtype=torch.int32) for gap in (10, 1000, 900_000_000, 10)]

    def weigh(gap):
        times = gap.cumsum(0, dtype=torch.int32)
        return torch.sqrt(times).mean()  # BUG

    return train(model, opt, gaps, weigh)


def pixels_less_their_mean():
    """Differences of uint8 pixels have no sign: one below is 255, whose exponential overflows."""
    # expect: op=aten::exp phase=data,forward kind=inf mechanism=OVF category=N8 step=2
    model = nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    pixels = [torch.tensor(values, dtype=torch.uint8) for values in ([9, 9], [12, 9], [8, 9], [9, 10])]

    def weigh(pixel):
        difference = (pixel - 9).float()
        return torch.exp(difference).mean()  # BUG

    return train(model, opt, pixels, weigh)


def negative_numbers_beside_a_hash():
    """A hash wraps around as it is meant to. What is negative here was so in the data."""
    # expect: op=aten::sqrt phase=data,forward kind=nan mechanism=DOM category=N1,N2 step=2
    model, buckets = nn.Linear(3, 1), nn.Embedding(8, 1)
    opt = torch.optim.SGD([*model.parameters(), *buckets.parameters()], lr=0.01)
    for reading in (4, 9, -4, 16):
        key = torch.tensor([reading, 7], dtype=torch.int32) * 1_540_483_477 % 8
        x = torch.tensor([reading, 1]).float()
        root = torch.sqrt(x)  # BUG
        loss = (model(torch.ones(2, 3)) - root[:, None] + buckets(key)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.weight


def hashes_that_wrap_around():
    """Feature hashing multiplies in int32 and int64 beyond their ranges, and takes the rest."""
    # expect: nothing
    buckets = nn.Embedding(16, 1)
    opt = torch.optim.SGD(buckets.parameters(), lr=0.01)
    for seed in (17, 31, 63):
        words = torch.arange(6, dtype=torch.int32) + seed
        short = (words * 1_540_483_477) % 16
        long = (words.long() * 6_364_136_223_846_793_005 + 1) % 16
        share = (words * 1_540_483_477).float().abs().log1p()
        loss = (buckets(short) + buckets(long) - share[:, None] / 20).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return buckets.weight


def accuracy_of_a_class_without_samples():
    """A count divided by a count, both integers: a class that nobody has."""
    # expect: op=aten::div phase=data,forward kind=nan mechanism=DIV0 category=N1,N2,N4,N7,U severity=warning step=2
    model = nn.Linear(3, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    train(model, opt, [torch.ones(1)] * 2, lambda batch: batch)
    truth = torch.tensor([0, 0, 1, 1])
    right = model(torch.ones(4, 3)).argmax(1) == truth
    recall = (right & (truth == 2)).sum() / (truth == 2).sum()  # BUG
    return torch.tensor(recall.item())
