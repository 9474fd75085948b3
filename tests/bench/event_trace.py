"""The ops of a piece of a program as numsan's hook sees them: what they write, how large it is. Needs no GPU and, on
meta tensors, no memory.

    with EventTrace("meta", model.parameters()) as trace:
        step()
    trace.events, trace.gradients
"""
from dataclasses import dataclass, field

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

import tier_rule


@dataclass(frozen=True)
class Tensor:
    bytes: int
    storage: int  # an identity, good while the trace lives
    storage_bytes: int
    written_parameter: bool


@dataclass
class Event:
    op: str  # aten::add_
    outputs: list = field(default_factory=list)  # floating or complex, on the device
    inputs: list = field(default_factory=list)
    written: set = field(default_factory=set)  # storages that are written in place
    integers: int = 0  # outputs of other types


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)


def is_view(schema, name):
    """As class_of in op_registry.cpp: named, or all that is returned aliases an argument unwritten."""
    if tier_rule.listed_class(name) is not None:
        return False
    overload = f"{name}.{schema.overload_name}" if schema.overload_name else name
    returns = [value.alias_info for value in schema.returns]
    return overload in tier_rule.VIEWS or bool(returns) and all(a is not None and not a.is_write for a in returns)


class EventTrace(TorchDispatchMode):
    """Events whose outputs are on `device`; all of them without one. Storages of the traced ops are watched weakly, so
    that none has another's identity. `gradients`: those that reach one of the parameters, each with the number of
    events before. `root`: the number of events before backward() starts; `alive_at_root`: storages that are there
    then."""

    def __init__(self, device=None, parameters=()):
        super().__init__()
        self.device = device
        self.events = []
        self.gradients = []
        self.root = 0
        self.alive_at_root = set()
        self._watched = {}
        self._parameters = list(parameters)
        self._hooks = []

    def __enter__(self):
        self._hooks = [p.register_post_accumulate_grad_hook(self._reached) for p in self._parameters]
        return super().__enter__()

    def __exit__(self, *error):
        for hook in self._hooks:
            hook.remove()
        return super().__exit__(*error)

    def _reached(self, parameter):
        self.gradients.append((len(self.events), self._tensor(parameter.grad, False)))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        schema = func._schema
        if schema.name == "aten::ones_like":
            self.root = len(self.events)
            self.alive_at_root = {key for key, storage in self._watched.items() if not storage.expired()}
        if tier_rule.listed_class(schema.name) not in ("Allocation", "Collective") and not is_view(schema, schema.name):
            self._add(schema, args, kwargs, result)
        return result

    def _add(self, schema, args, kwargs, result):
        event, written = Event(schema.name), []
        for at, argument in enumerate(schema.arguments):
            value = args[at] if at < len(args) else kwargs.get(argument.name)
            tensors = list(tensors_in(value))
            event.inputs += [self._tensor(t, False) for t in tensors if self._here(t) and self._floats(t)]
            alias = argument.alias_info
            if (alias is not None and alias.is_write) or (schema.name, at) in tier_rule.SILENT_WRITES:
                written += tensors
        is_written = {id(tensor) for tensor in written}
        returned = list(tensors_in(result))
        internal = {id(tensor) for at, tensor in enumerate(returned)
                    if (schema.name, at) in tier_rule.INTERNAL_RETURNS}
        outputs = {id(tensor): tensor for tensor in [*returned, *written]}
        for key, tensor in outputs.items():
            if not self._here(tensor):
                continue
            if key in is_written:
                event.written.add(self._storage(tensor))
            if self._floats(tensor) and key not in internal:
                event.outputs.append(self._tensor(tensor, key in is_written))
            else:
                event.integers += 1
        if event.outputs or event.integers:
            self.events.append(event)

    def _here(self, tensor):
        return self.device is None or tensor.device.type == self.device

    @staticmethod
    def _floats(tensor):
        return tensor.dtype.is_floating_point or tensor.dtype.is_complex

    def _storage(self, tensor):
        storage = tensor.untyped_storage()
        self._watched.setdefault(storage._cdata, StorageWeakRef(storage))
        return storage._cdata

    def _tensor(self, tensor, written):
        return Tensor(tensor.numel() * tensor.element_size(), self._storage(tensor), tensor.untyped_storage().nbytes(),
                      written and tensor.requires_grad and tensor.is_leaf)
