"""A NaN from every kind of Python frame. Each marked line makes one that the host reads, so each is one finding."""
import functools
import threading

import torch
from torch import nn

NEGATIVE = -torch.ones(2)


def function():
    return torch.log(NEGATIVE)  # place: function


class Layer(nn.Module):
    def forward(self, x):
        return torch.log(x)  # place: Layer.forward

    @staticmethod
    def static(x):
        return torch.log(x)  # place: Layer.static

    @classmethod
    def of_class(cls, x):
        return torch.log(x)  # place: Layer.of_class


def generator():
    yield NEGATIVE
    yield torch.log(NEGATIVE)  # place: generator


def decorated(inner):
    @functools.wraps(inner)
    def wrapper(*arguments):
        return inner(*arguments)
    return wrapper


@decorated
def behind_decorator(x):
    return torch.log(x)  # place: behind_decorator


async def coroutine():
    return torch.log(NEGATIVE)  # place: coroutine


def in_thread():
    NEGATIVE.log().sum().item()  # place: in_thread


function().sum().item()
layer = Layer()
layer(NEGATIVE).sum().item()
Layer.static(NEGATIVE).sum().item()
Layer.of_class(NEGATIVE).sum().item()
list(generator())[1].sum().item()
behind_decorator(NEGATIVE).sum().item()
[x.log() for x in (NEGATIVE,)][0].sum().item()  # place: <listcomp>
{1: x.log() for x in (NEGATIVE,)}[1].sum().item()  # place: <dictcomp>
(lambda x: x.log())(NEGATIVE).sum().item()  # place: <lambda>
exec(compile("\n(-torch.ones(2)).log().sum().item()", "<made here>", "exec"))
try:
    coroutine().send(None)
except StopIteration as stop:
    stop.value.sum().item()
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
