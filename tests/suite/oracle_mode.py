"""The oracle's eyes: a dispatch mode that looks at what every op reads and writes."""
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

import oracle_zeros
from oracle_ledger import INFINITE, Ledger, kinds_of
from oracle_places import here

ALLOCATIONS = {"empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "resize_"}
OVERWRITES = {"uniform_", "normal_", "zero_", "fill_", "bernoulli_", "copy_", "set_", "random_",
              "exponential_", "geometric_", "log_normal_", "cauchy_"}
CONSTANTS = {"full", "fill", "fill_", "full_like", "new_full", "scalar_tensor", "masked_fill",
             "masked_fill_", "where", "index_fill", "index_fill_", "constant_pad_nd", "index_put",
             "index_put_", "scatter", "scatter_", "eye", "arange"}
STATISTICS = {"native_batch_norm": slice(3, 5), "_native_batch_norm_legit": slice(3, 5)}
SCRATCH_OUTPUTS = {"_ctc_loss": 1}  # the outputs behind these are the op's own notes
UNSCALE = "_amp_foreach_non_finite_check_and_unscale_"
READ_ON_HOST = "_local_scalar_dense"


def tensors_in(value):
    return [one for one in tree_flatten(value)[0] if isinstance(one, torch.Tensor)]


class Oracle(TorchDispatchMode):
    """Judges one program. `zeros` also looks for results that were flushed to zero."""

    def __init__(self, program, zeros=False):
        super().__init__()
        self.program = program
        self.zeros = zeros
        self.ledger = Ledger()
        self.optimizer_depth = 0
        self.module_depth = 0
        self.quiet = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.quiet:
            return func(*args, **kwargs)
        self.ledger.seq += 1
        name = func._schema.name.split("::")[-1]
        written = self.written(func, name, args, kwargs)
        inputs = [one for one in tensors_in((args, kwargs))
                  if not (name in OVERWRITES and any(one is target for target in written))
                  and one is not kwargs.get("out")]
        place = here(self.program, self.optimizer_depth)
        roots = self.read(name, inputs, place)
        if name == READ_ON_HOST:
            self.ledger.escape(inputs[0], "host")
        elif name == UNSCALE:
            self.ledger.scaled(args[0])
        exact, before = None, None
        if self.zeros and name not in ALLOCATIONS:
            exact = oracle_zeros.reference(func, name, args, kwargs)
            before = inputs[0].clone() if inputs and name in oracle_zeros.UPDATES else None
        result = func(*args, **kwargs)
        outputs = tensors_in(result)[:SCRATCH_OUTPUTS.get(name)]
        flat = tree_flatten((args, kwargs))[0]
        self.write(func, name, inputs, outputs, written, roots, place, flat)
        if exact is not None:
            note = oracle_zeros.flushed(name, outputs or written, exact, before)
            if note:
                self.birth(func, "zero", place, self.phase(func, place, inputs), note=note)
        return result

    @staticmethod
    def written(func, name, args, kwargs):
        """The tensors among the arguments that the op changes."""
        targets = []
        for position, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = args[position] if position < len(args) else kwargs.get(argument.name)
                targets += tensors_in(value)
        if name in STATISTICS:
            targets += tensors_in(args[STATISTICS[name]])
        return targets

    def read(self, name, inputs, place):
        """{kind: births} of what the op reads; a bad value that nobody made is a birth here."""
        roots = {}
        for tensor in inputs:
            kinds, entry = kinds_of(tensor), self.ledger.entry(tensor)
            if entry is None:
                continue
            for kind in kinds:
                if kind not in entry.roots:
                    entry.roots[kind] = self.arrival(name, tensor, kind, entry, place)
                roots.setdefault(kind, set()).add(entry.roots[kind])
        return roots

    def arrival(self, name, tensor, kind, entry, place):
        if entry.allocation is not None:
            op, lines, seq, step = entry.allocation
            return self.ledger.birth(op, kind, lines, None, seq=seq, step=step, note="unwritten")
        chosen = kind in INFINITE and name == "lift_fresh" and tensor.dim() == 0
        phase = "load" if entry.parameter or self.module_depth else "data"
        return self.ledger.birth("external", kind, place[0], phase, node=place[1], intended=chosen)

    def write(self, func, name, inputs, outputs, written, roots, place, flat):
        """Files what the op wrote, with the birth that explains it."""
        constant = name in CONSTANTS and any(
            isinstance(value, float) and math.isinf(value) for value in flat)
        shared = {id(self.ledger.entry(one)) for one in inputs}
        touched = any(entry.touched for entry in map(self.ledger.entry, inputs) if entry)
        only_state = bool(inputs) and all(
            entry.state for entry in map(self.ledger.entry, inputs) if entry)
        phase, made = self.phase(func, place, inputs), {}
        for tensor in {id(one): one for one in [*outputs, *written]}.values():
            entry = self.ledger.entry(tensor)
            if entry is None:
                continue
            target = any(tensor is one for one in written)
            if name in ALLOCATIONS:
                entry.allocation = (f"aten::{name}", place[0], self.ledger.seq, self.ledger.step)
                entry.roots = {}
                continue
            found = {}
            for kind in kinds_of(tensor):
                number = self.ledger.heir(kind, roots)
                if number is None and not target and id(entry) in shared:
                    number = entry.roots.get(kind)
                if number is None:
                    if kind not in made:
                        made[kind] = self.birth(func, kind, place, phase,
                                                intended=constant and kind in INFINITE)
                    number = made[kind]
                found[kind] = number
            whole = tensor.numel() * tensor.element_size() >= entry_bytes(tensor)
            view = not target and id(entry) in shared
            keep = {} if whole and not view else entry.roots
            entry.roots = {**found, **keep} if view else {**keep, **found}
            entry.touched |= touched
            entry.state |= phase == "optimizer" or (
                only_state and not self.module_depth and not tensor.requires_grad)
            if target and entry.parameter:
                self.ledger.escape(tensor, "parameter")

    def birth(self, func, kind, place, phase, **more):
        return self.ledger.birth(func._schema.name, kind, place[0], phase, node=place[1], **more)

    def phase(self, func, place, inputs):
        """The phase of the running op, as the report defines it."""
        if func.namespace in ("c10d", "_c10d_functional"):
            return "comm"
        if self.optimizer_depth:
            return "optimizer"
        if place[1] is not None:
            return "backward"
        if self.module_depth:
            return "forward"
        entries = [entry for entry in map(self.ledger.entry, inputs) if entry is not None]
        if not torch.is_grad_enabled() and any(entry.state for entry in entries):
            return "optimizer"
        return "forward" if any(entry.touched for entry in entries) else "data"


def entry_bytes(tensor):
    return tensor.untyped_storage().nbytes()
