#!/usr/bin/env python3
"""What a training step of the bench's models would have scanned on a GPU: outputs, bytes and launches, tier by tier,
counted on meta tensors. No GPU, no time, no memory: a model of the work, not a measurement.

    model_bytes.py                      the table
    model_bytes.py --write              puts it into tests/bench/RESULTS.md
    model_bytes.py --check              exit status 1 where RESULTS.md has another one
    model_bytes.py --json [--works A,B] the figures of some models
"""
import argparse
import difflib
import json
import pathlib
import sys

import event_trace
import models
import tier_rule

sys.path.insert(0, str(tier_rule.ROOT / "scripts/gpu"))
import marked  # noqa: E402

RESULTS = pathlib.Path(__file__).resolve().parent / "RESULTS.md"
TABLE = "model bytes"


def trace_of(step, device=None):
    """Of the second step: the first one makes optimizer state."""
    step()
    with event_trace.EventTrace(device, step.model.parameters()) as trace:
        step()
    return trace


def traced(step, device=None):
    return trace_of(step, device).events


def counted(events, tier, place):
    """What is read of the outputs of ops; `ops`: those of which all is read."""
    reads = [tier_rule.read(event, tier, place) for event in events]
    outputs = [output for read in reads for output in read]
    return {"ops": sum(len(read) == len(event.outputs) > 0 for read, event in zip(reads, events)),
            "outputs": len(outputs),
            "bytes": sum(output.bytes for output in outputs)}


def on_device(trace, tier):
    """The same and its launches, and what every tier reads besides: gradients where they reach a leaf, and the loss
    that backward() starts from, which has a launch of its own. `gated`: launches that look at nothing unless it is
    bad."""
    ops, loss_bytes, gradients = counted(trace.events, tier, "device"), 4, trace.gradients
    return {"outputs": ops["outputs"] + len(gradients) + 1,
            "bytes": ops["bytes"] + sum(gradient.bytes for _, gradient in gradients) + loss_bytes,
            "launches": tier_rule.launches(trace.events, tier, gradients) + 1,
            "gated": tier_rule.behind_gate(trace, tier),
            "at_once": tier_rule.launches_at_once(trace.events, tier) + 1 +
            sum(1 + (gradient.bytes > tier_rule.ALONE_BYTES) for _, gradient in gradients)}


def figures(name):
    step = models.training_step(name, "meta")
    trace = trace_of(step, "meta")
    return {"title": models.WORKS[name].title, "parameters": sum(p.numel() for p in step.model.parameters()),
            "ops": len(trace.events), "tiers": {tier: on_device(trace, tier) for tier in tier_rule.TIERS},
            "graph": tier_rule.in_graph(trace)}


def lines(works):
    yield ("| model | ops | tier | tensors read | GB read | of all | launches | behind a gate | "
           "if gradients did not wait |")
    yield "|" + " --- |" * 9
    for one in works:
        everything = one["tiers"]["full"]["bytes"]
        for tier, read in one["tiers"].items():
            first = tier == tier_rule.TIERS[0]
            share = f"{100 * read['bytes'] / everything:.1f} %"
            yield (f"| {one['title'] if first else ''} | {one['ops'] if first else ''} | {tier} | {read['outputs']} | "
                   f"{read['bytes'] / 1e9:.3f} | {share} | {read['launches']} | {read['gated']} | {read['at_once']} |")


def graph_lines(works):
    yield ("| model, its step in a CUDA graph | launches by turns | GB | launches in each replay | GB | of all | "
           "behind a gate |")
    yield "|" + " --- |" * 7
    for one in works:
        turns, each = one["graph"]["turns"], one["graph"]["each"]
        share = f"{100 * each['bytes'] / (turns['bytes'] + each['bytes']):.1f} %"
        yield (f"| {one['title']} | {turns['launches']} | {turns['bytes'] / 1e9:.3f} | {each['launches']} | "
               f"{each['bytes'] / 1e9:.3f} | {share} | {one['graph']['gated']} |")


def text(names):
    works = [figures(name) for name in names]
    yield from lines(works)
    yield ""
    yield from graph_lines(works)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--works", default=",".join(models.names()))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    names = options.works.split(",")
    unknown = [name for name in names if name not in models.WORKS]
    if unknown:
        parser.error(f"no model {unknown[0]}: there are {', '.join(models.WORKS)}")
    if options.json:
        print(json.dumps({name: figures(name) for name in names}, indent=1))
        return 0
    block = "\n".join(text(names))
    if not (options.write or options.check):
        print(block)
        return 0
    before = RESULTS.read_text()
    after = marked.replaced(before, f"table {TABLE}", "end table", block)
    if options.write:
        RESULTS.write_text(after)
    elif before != after:
        lines_of = [text.splitlines(True) for text in (before, after)]
        sys.stdout.writelines(difflib.unified_diff(*lines_of, "RESULTS.md", "now"))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
