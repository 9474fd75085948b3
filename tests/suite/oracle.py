#!/usr/bin/env python3
"""A slow, independent judge: where non-finite values are born, and which of them escape.

usage: oracle.py [--jobs N] [--zeros PROGRAM]... --out FOLDER PROGRAM...

It is built on TorchDispatchMode, shares no code with numsan and needs no build of it. torch is
imported once; every program then runs in a forked child and leaves FOLDER/NAME.json. A program
named by `--zeros` is also searched for values flushed to zero.
"""
import argparse
import contextlib
import gc
import json
import os
import pathlib
import runpy
import signal
import sys
import traceback
import weakref

import torch
import torch._dynamo  # every optimizer imports it: once here, not once a program
from torch.optim.optimizer import (register_optimizer_step_post_hook,
                                   register_optimizer_step_pre_hook)

from oracle_mode import Oracle

SECONDS = 600


@contextlib.contextmanager
def hushed(oracle):
    """Looks at tensors without being seen by the dispatch mode."""
    before, oracle.quiet = oracle.quiet, True
    try:
        yield
    finally:
        oracle.quiet = before


def leaves_of(roots):
    """The tensors that a backward from these roots would give a gradient."""
    nodes, seen, leaves = [root.grad_fn for root in roots], set(), []
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        nodes.extend(parent for parent, _ in node.next_functions)
    return leaves


def watch_backward(oracle):
    """What a backward starts from is a loss; what it leaves in a leaf is a gradient."""
    plain_backward, plain_grad = torch.autograd.backward, torch.autograd.grad

    def started(outputs):
        roots = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
        with hushed(oracle):
            for root in roots:
                oracle.ledger.escape(root, "loss")
        return roots

    def backward(tensors, *args, **kwargs):
        leaves = leaves_of(started(tensors))
        result = plain_backward(tensors, *args, **kwargs)
        with hushed(oracle):
            for leaf in leaves:
                if leaf.grad is not None:
                    oracle.ledger.entry(leaf.grad).state = True
                    oracle.ledger.escape(leaf.grad, "gradient")
        return result

    def grad(outputs, inputs, *args, **kwargs):
        started(outputs)
        result = plain_grad(outputs, inputs, *args, **kwargs)
        wanted = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
        with hushed(oracle):
            for tensor, gradient in zip(wanted, result):
                if gradient is not None and tensor.is_leaf:
                    oracle.ledger.entry(gradient).state = True
                    oracle.ledger.escape(gradient, "gradient")
        return result

    torch.autograd.backward, torch.autograd.grad = backward, grad


def watch_optimizers(oracle):
    """Counts steps, and looks at parameters and optimizer state after each. Of several optimizers the one that stepped
    most counts; a new one begins where those that are still there are, or takes the next step where none is."""
    steps = weakref.WeakKeyDictionary()

    def before(optimizer, args, kwargs):
        oracle.optimizer_depth += 1

    def after(optimizer, args, kwargs):
        oracle.optimizer_depth -= 1
        with hushed(oracle):
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    oracle.ledger.escape(parameter, "parameter")
                    for value in optimizer.state.get(parameter, {}).values():
                        if isinstance(value, torch.Tensor):
                            oracle.ledger.entry(value).state = True
                            oracle.ledger.escape(value, "optimizer_state")
        steps[optimizer] = steps.get(optimizer, oracle.ledger.step - (1 if steps else 0)) + 1
        oracle.ledger.step = max(oracle.ledger.step, steps[optimizer])

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)


def watch_modules(oracle):
    """Knows when a module runs, and looks at its buffers afterwards."""
    plain = torch.nn.Module.__call__

    def call(self, *args, **kwargs):
        oracle.module_depth += 1
        try:
            return plain(self, *args, **kwargs)
        finally:
            oracle.module_depth -= 1
            with hushed(oracle):
                for name, buffer in self.named_buffers(recurse=False):
                    oracle.ledger.escape(buffer, "buffer", name)

    torch.nn.Module.__call__ = call


def watch_host(oracle):
    """Sees the reads on the host that are no op."""
    for name in ("tolist", "numpy"):
        plain = getattr(torch.Tensor, name)

        def read(self, *args, _plain=plain, **kwargs):
            with hushed(oracle):
                oracle.ledger.escape(self, "host")
                return _plain(self, *args, **kwargs)

        setattr(torch.Tensor, name, read)


def judge(program, zeros=False):
    """Runs a program in this process and returns what was seen; patches torch, so use it in a
    child only."""
    program = str(pathlib.Path(program).resolve())
    oracle = Oracle(program, zeros)
    torch.compile = lambda model=None, **_: model if model is not None else (lambda inner: inner)
    torch.autograd.set_detect_anomaly(True, check_nan=False)  # keeps the forward line of a node
    for watch in (watch_backward, watch_optimizers, watch_modules, watch_host):
        watch(oracle)
    sys.argv, failure = [program], None
    try:
        with oracle:
            runpy.run_path(program, run_name="__main__")
    except SystemExit as leaving:
        failure = None if leaving.code in (None, 0) else f"exit status {leaving.code}"
    except Exception:
        failure = traceback.format_exc()
    return {"program": program, "failure": failure, "ops": oracle.ledger.seq,
            "steps": oracle.ledger.step, "births": oracle.ledger.as_list()}


def _child(program, out, zeros):
    """Never returns: judges in a fork, leaves a JSON file behind."""
    signal.alarm(SECONDS)
    target = out / f"{program.stem}.json"
    with open(out / f"{program.stem}.log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    torch.set_num_threads(1)
    status = 1
    try:
        verdict = judge(program, zeros)
        target.write_text(json.dumps(verdict, indent=1))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def judge_all(programs, out, jobs=2, zeros=()):
    """Judges many programs, `jobs` at a time, each in a fork of this process. `zeros` are those to
    look at for flushes."""
    running = set()
    gc.freeze()  # or collections in the forks would write to, and so copy, what was imported
    for program in programs:
        (out / f"{program.stem}.json").unlink(missing_ok=True)
        while len(running) >= jobs:
            running.discard(os.wait()[0])
        child = os.fork()
        if child == 0:
            _child(program, out, program in zeros)
        running.add(child)
    while running:
        running.discard(os.wait()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--zeros", action="append", default=[], metavar="PROGRAM",
                        type=pathlib.Path, help="a program to search for flushed values, too")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("programs", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    programs = options.programs + [p for p in options.zeros if p not in options.programs]
    judge_all(programs, options.out, options.jobs, options.zeros)


if __name__ == "__main__":
    main()
