"""What a twin program prints at its end: hashes of everything that numsan must not change."""
import hashlib
import random

import numpy
import torch

# Both seed themselves from the system. A program that imports this starts from the same state every time.
random.seed(0)
numpy.random.seed(0)


def digest(tensors):
    """sha256 over the bytes of tensors, in order."""
    hasher = hashlib.sha256()
    for tensor in tensors:
        tensor = tensor.detach()
        tensor = tensor.to_dense() if tensor.layout != torch.strided else tensor
        hasher.update(str((tuple(tensor.shape), tensor.dtype)).encode())
        hasher.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return hasher.hexdigest()


def show(model, *more):
    """Prints the hashes of all parameters, buffers, gradients, of `more` tensors and of the random states."""
    print("parameters", digest(model.parameters()))
    print("buffers", digest(model.buffers()))
    print("gradients", digest(p.grad for p in model.parameters() if p.grad is not None))
    print("more", digest(more))
    print("random of torch", digest([torch.get_rng_state()]))
    print("random of Python", hashlib.sha256(repr(random.getstate()).encode()).hexdigest())
    name, keys, *rest = numpy.random.get_state()
    print("random of numpy", hashlib.sha256(keys.tobytes() + repr((name, *rest)).encode()).hexdigest())
