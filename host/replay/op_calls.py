"""An operator of this torch, found by the name in a dump, and its arguments bound to the operator's own schema."""
import torch

# Their results depend on other processes, or on nothing that a dump holds.
COLLECTIVE_NAMESPACES = ("c10d", "_c10d_functional", "c10d_functional", "symm_mem")
MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")  # in torch's order
REFUSED_ARGUMENTS = ("filename", "storage", "source_storage")  # a dump of a stranger opens no file


class CannotRun(Exception):
    """Why the operator of a dump cannot be run here: one line."""


def base_name(call):
    """log of aten::log_, as tables name operators."""
    name = call.name.rpartition("::")[2]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def find_operator(call):
    """The overload that a dump names; CannotRun where this torch has none, or one that must not be run."""
    namespace, _, name = call.name.partition("::")
    overload = call.overload or "default"
    if not all(part.isidentifier() for part in (namespace, name, overload)):
        raise CannotRun(f"{call.name!r} is not the name of an operator")
    if namespace in COLLECTIVE_NAMESPACES:
        raise CannotRun(f"{call.name} is a collective: what it gives depends on the other ranks")
    full = call.name + (f".{call.overload}" if call.overload else "")
    if not torch._C._dispatch_has_kernel(full):
        raise CannotRun(f"torch {torch.__version__} has no operator {full}; an operator of a library is there once the "
                        "library is imported")
    operator = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    for argument in operator._schema.arguments:
        if argument.name in REFUSED_ARGUMENTS or "Storage" in str(argument.type):
            raise CannotRun(f"{full} takes a {argument.name}: that is not run for a dump")
    return operator


def is_random(operator):
    return torch.Tag.nondeterministic_seeded in operator.tags


def leaves_memory_unwritten(call):
    """Operators whose result is whatever the memory held."""
    name = base_name(call)
    return name.startswith(("empty", "new_empty")) or name in ("resize", "resize_as", "_resize_output")


def plain_value(argument, schema_type, device):
    """The Python value of an argument that is neither a tensor nor a list. `device` is where the op is to run."""
    kind, value = argument.kind, argument.value
    if kind == "left_out":
        why = argument.why or "it does not say why"
        raise CannotRun(f"argument `{argument.name}` was left out of the dump: {why}")
    if kind in ("none", "generator"):
        return None
    if kind == "device":
        return torch.device(device)
    if kind == "layout":
        if value not in ("strided", "torch.strided", 0):
            raise CannotRun(f"argument `{argument.name}` is a layout that cannot be replayed: {value}")
        return torch.strided
    if kind == "memory_format":
        name = MEMORY_FORMATS[value] if isinstance(value, int) and 0 <= value < len(MEMORY_FORMATS) else value
        if str(name).removeprefix("torch.") not in MEMORY_FORMATS:
            raise CannotRun(f"argument `{argument.name}` is an unknown memory format: {value}")
        return getattr(torch, str(name).removeprefix("torch."))
    if kind == "number" and isinstance(value, int) and "float" in schema_type:
        return float(value)
    return value


def bind(operator, call, value_of):
    """(positional, keywords) for the operator; value_of(argument, schema type, place) makes each value."""
    by_name = {argument.name: (place, argument) for place, argument in enumerate(call.args)}
    unnamed = not any(argument.name for argument in call.args)
    schema = operator._schema.arguments
    known = {argument.name for argument in schema}
    for name in by_name:
        if not unnamed and name not in known:
            raise CannotRun(f"{call} has no argument `{name}` in torch {torch.__version__}")
    positional, keywords = [], {}
    for i, wanted in enumerate(schema):
        if unnamed:
            place, argument = (i, call.args[i]) if i < len(call.args) else (None, None)
        else:
            place, argument = by_name.get(wanted.name, (None, None))
        if argument is None:
            if not wanted.has_default_value():
                raise CannotRun(f"the dump has no argument `{wanted.name}` for {call}")
            value = wanted.default_value
        else:
            value = value_of(argument, str(wanted.type), (place,))
        if wanted.kwarg_only:
            keywords[wanted.name] = value
        else:
            positional.append(value)
    return positional, keywords


def tensors_of(value):
    """The tensors of a result or an argument, in order, lists flattened."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def call_operator(operator, positional, keywords):
    """What the operator gives or, where it gives nothing, what it wrote. CannotRun says what torch said against it."""
    try:
        given = operator(*positional, **keywords)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise CannotRun(str(error).strip().split("\n")[0][:200]) from None
    results = tensors_of(given)
    if results or operator._schema.returns:
        return results
    written = []
    for i, argument in enumerate(operator._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = keywords.get(argument.name) if argument.kwarg_only else positional[i]
            written += tensors_of(value)
    return written
