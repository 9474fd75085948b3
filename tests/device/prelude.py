"""What the programs of these tests begin with."""
import copy
import ctypes
import faulthandler
import os
import sys
import threading

import torch
import torch.nn.functional as F
from torch import nn

import fakegpu
from fakegpu import held, hold, peek, release, unequal_bytes

faulthandler.dump_traceback_later(280, exit=True)
GPU = "fakegpu"
D = torch.fakegpu


class Graph:
    """What is run inside `with` is captured from a stream of its own, in relaxed mode, and runs when it is replayed."""

    def __init__(self):
        self.driver, self.stream = ctypes.CDLL("libcuda.so.1"), torch.Stream(device=GPU)
        self.handle, self.ready = ctypes.c_void_p(self.stream.native_handle), ctypes.c_void_p()

    def __enter__(self):
        self.stream.__enter__()
        assert self.driver.cuStreamBeginCapture_v2(self.handle, 2) == 0
        return self

    def __exit__(self, *raised):
        graph = ctypes.c_void_p()
        ended = self.driver.cuStreamEndCapture(self.handle, ctypes.byref(graph))
        self.stream.__exit__(*raised)
        assert ended == 0
        assert self.driver.cuGraphInstantiateWithFlags(ctypes.byref(self.ready), graph, ctypes.c_uint64(0)) == 0

    def replay(self, times):
        for _ in range(times):
            assert self.driver.cuGraphLaunch(self.ready, self.handle) == 0
        assert self.driver.cuStreamSynchronize(self.handle) == 0


def leaves(value):
    """The tensors and numbers in nested lists, tuples and dicts, on the CPU."""
    if isinstance(value, torch.Tensor):
        return [value.detach().cpu()]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part)]
    return [value]


def equal(a, b):
    if not isinstance(a, torch.Tensor):
        return a == b
    bits = [t.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8) for t in (a, b)]
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*bits)


def same(function):
    """`function(device)` gives the same bits on the CPU and on the device, whose memory ends as operators left it."""
    results = []
    for device in ("cpu", GPU):
        torch.manual_seed(0)
        results.append(leaves(function(device)))
    assert len(results[0]) == len(results[1]), function.__name__
    for number, (cpu, gpu) in enumerate(zip(*results)):
        assert equal(cpu, gpu), f"{function.__name__}: result {number}: {cpu} on the CPU, {gpu} on the device"
    assert unequal_bytes() == 0, function.__name__


def train(model, batch, device, optimizer, steps=4, loss=lambda out: out.float().square().mean()):
    """Parameters, buffers and losses after some steps."""
    model, batch, losses = model.to(device), batch.to(device), []
    opt = optimizer(model.parameters())
    for _ in range(steps):
        opt.zero_grad()
        value = loss(model(batch))
        value.backward()
        opt.step()
        losses.append(value.item())
    return losses, model.state_dict()
