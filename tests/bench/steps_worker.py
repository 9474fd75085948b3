"""A process that trains in turns: steps_worker.py WORK DEVICE none|anomaly|hooks (see cuda_steps.py).

Prints `ready` when the model is there; then answers each line on stdin: a number with the seconds per step of so many
steps, after some that are not timed, `facts` with JSON. Between turns it keeps no more of the device than it must.
"""
import json
import pathlib
import sys
import time

import torch

import models

UNTIMED = 2  # steps at the start of a turn, in which torch's allocator gets its memory back


def check_modules(model):
    """What people write to find the module: every output is asked at once, and the program waits for the answer."""
    def check(module, args, output):
        if not bool(torch.isfinite(output).all()):
            raise FloatingPointError(f"output of {type(module).__name__} is not finite")

    for module in model.modules():
        module.register_forward_hook(check)


def graph_of(ops, device):
    """Replays a CUDA graph of small ops, each of which writes a tensor of its own."""
    x = torch.ones(1024, device=device)
    results = [x * 0.999]  # what is loaded at a first use is not part of a graph
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(ops):
            x = x * 0.999
            results.append(x)
    graph.kept = results
    return graph.replay


def prepared(work, device, check):
    if work.startswith("graph-"):
        return graph_of(int(work.partition("-")[2]), device)
    step = models.training_step(work, device)
    if check == "hooks":
        check_modules(step.model)
    if check == "anomaly":
        torch.autograd.set_detect_anomaly(True, check_nan=True)
    return step


def memory(device):
    """Bytes on the device: torch's peak, and all that are taken by whomever."""
    if device != "cuda":
        return {}
    free, total = torch.cuda.mem_get_info()
    return {"peak": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.memory_reserved(), "used": total - free}


def main(work, device, check):
    if device == "fakegpu":
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fakes/torch_device"))
        import fakegpu  # noqa: F401
    synchronize = (lambda: None) if device == "cpu" else torch.get_device_module(device).synchronize
    step = prepared(work, device, check)
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "facts\n":
            print(json.dumps(memory(device)), flush=True)
            continue
        steps = int(line)
        for _ in range(UNTIMED):
            step()
        synchronize()
        started = time.perf_counter()
        for _ in range(steps):
            step()
        synchronize()
        seconds = (time.perf_counter() - started) / steps
        if device == "cuda":
            torch.cuda.empty_cache()
        print(seconds, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
