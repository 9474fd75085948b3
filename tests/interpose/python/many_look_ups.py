"""Names are looked up on four threads at once, each by a thread of its own that begins and ends; needs no torch.

    python3.N many_look_ups.py libstacks.so     prints how many look-ups found the module
"""
import sys
import threading
import types

import walk

LOOK_UPS = 500


def made_up_torch():
    """What a look-up asks for before it begins."""
    torch, nn, optim = (types.ModuleType(name) for name in ("torch", "torch.nn", "torch.optim"))
    torch.Tensor, nn.Module, optim.Optimizer = (type(name, (), {}) for name in ("Tensor", "Module", "Optimizer"))
    nn.Parameter = type("Parameter", (torch.Tensor,), {})
    sys.modules.update({"torch": torch, "torch.nn": nn, "torch.optim": optim})
    return nn


class Net(made_up_torch().Module):
    def __init__(self):
        self._parameters, self._buffers, self._modules = {}, {}, {}


def main(path):
    lib = walk.load(path)
    walk.attach(lib)
    found = []

    threads = [threading.Thread(target=lambda: found.append(lib.stacks_look_ups(LOOK_UPS))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(found))


net = Net()
if __name__ == "__main__":
    main(sys.argv[1])
