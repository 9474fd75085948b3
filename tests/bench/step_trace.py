#!/usr/bin/env python3
"""Records the ops of one training step of the bench's models, in order, as text that a test in C++ can play: what each
writes, when backward() starts, and when a gradient has reached its parameter. On meta tensors nothing is computed.

    step_trace.py WORK [--out FILE] [--device meta|cuda|fakegpu]

One line an event. Sizes are bytes of floating outputs in order, those of a parameter that is written with a `p`; `AxN`
are N of a kind.

    op NAME SIZE...         loss SIZE         gradient SIZE
    read PLACE TIER N SIZE  how many outputs of ops a tier reads when they are made, and how large they are, by
                            tier_rule.py; of ops with less than 64, which one word can tell apart
"""
import argparse
import itertools
import pathlib
import sys

import torch

import event_trace
import model_bytes
import models
import tier_rule


def sizes(outputs):
    """The outputs' sizes as words."""
    words = [f"{output.bytes}{'p' if output.written_parameter else ''}" for output in outputs]
    for word, alike in itertools.groupby(words):
        count = len(list(alike))
        yield word if count == 1 else f"{word}x{count}"


def recorded(name, device):
    """(events, lines of them) of the second step."""
    step = models.training_step(name, device)
    step()
    marks = []  # (how many events were before it, line)

    def bytes_of(tensor):
        return tensor.numel() * tensor.element_size()

    backward = torch.Tensor.backward

    def starts(loss, *args, **kwargs):
        marks.append((len(trace.events), f"loss {bytes_of(loss)}"))
        return backward(loss, *args, **kwargs)

    def arrives(parameter):
        marks.append((len(trace.events), f"gradient {bytes_of(parameter.grad)}"))

    hooks = [one.register_post_accumulate_grad_hook(arrives) for one in step.model.parameters()]
    torch.Tensor.backward = starts
    try:
        with event_trace.EventTrace(device) as trace:
            step()
    finally:
        torch.Tensor.backward = backward
        for hook in hooks:
            hook.remove()
    lines, at = [], 0
    for before, line in [*marks, (len(trace.events), None)]:
        lines += [" ".join(["op", event.op, *sizes(event.outputs)]) for event in trace.events[at:before]
                  if event.outputs]
        lines += [line] if line else []
        at = before
    return trace.events, lines


def text(name, device):
    events, lines = recorded(name, device)
    yield f"# {models.WORKS[name].title}: one training step on {device}, torch {torch.__version__}"
    yield "# by tests/bench/step_trace.py"
    short = [event for event in events if len(event.outputs) < 64]
    for place in ("host", "device"):
        for tier in tier_rule.TIERS:
            read = model_bytes.counted(short, tier, place)
            yield f"read {place} {tier} {read['outputs']} {read['bytes']}"
    yield from lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=list(models.WORKS))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--device", default="meta")
    options = parser.parse_args()
    if options.device == "fakegpu":
        import fakegpu  # noqa: F401
    lines = "".join(line + "\n" for line in text(options.work, options.device))
    if options.out:
        options.out.write_text(lines)
    else:
        sys.stdout.write(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
