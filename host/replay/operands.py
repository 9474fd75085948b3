"""Makes the arguments of a dumped call again: strides, expanded and shared operands, on a device, in a wider type."""
from dataclasses import dataclass, field, replace

import torch

import op_calls

WIDE = {torch.complex32: torch.complex128, torch.complex64: torch.complex128}
MOST_PADDING = 1 << 26  # bytes of memory between an operand's values that are made again; a slice may have more


def wide_of(dtype):
    """float64 or complex128 for what has a fraction, else the type itself."""
    if dtype.is_complex:
        return WIDE.get(dtype, dtype)
    return torch.float64 if dtype.is_floating_point else dtype


@dataclass(frozen=True)
class Setting:
    """How arguments are to be made. `reverse`: dimensions to turn around, by place in the arguments."""

    device: str = "cpu"
    dtype: torch.dtype | None = None  # for all that has a fraction; float64 is complex128 for complex numbers
    contiguous: bool = False
    magnitudes: bool = False
    reverse: dict = field(default_factory=dict, hash=False)


def needed_elements(sizes, strides):
    """Elements of memory that a view of these sizes and strides spans."""
    if 0 in sizes:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))


def is_plain(argument):
    """Whether an argument lies as a new tensor of its sizes would."""
    if not argument.strides:
        return True
    expected = 1
    for size, stride in zip(reversed(argument.sizes), reversed(argument.strides)):
        if size > 1 and stride != expected:
            return False
        expected *= max(size, 1)
    return True


def with_strides(values, strides):
    """A tensor of these values that lies in memory as `strides` say; None where that would take too much memory."""
    elements = needed_elements(values.shape, strides)
    bytes_of_it = elements * values.dtype.itemsize
    if bytes_of_it > 4 * values.numel() * values.dtype.itemsize + MOST_PADDING:
        return None
    memory = torch.zeros(elements, dtype=values.dtype, device=values.device)
    view = memory.as_strided(values.shape, strides)
    once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)  # of what is expanded
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}.get(values.dtype.itemsize, values.dtype)
    try:
        view[once].copy_(values[once])
    except RuntimeError:  # windows that overlap: what two of them share has one value
        places = torch.zeros(values.shape, dtype=torch.int64, device=values.device)
        for dimension, stride in enumerate(strides):
            steps = torch.arange(values.shape[dimension], device=values.device) * stride
            places += steps.view([-1 if i == dimension else 1 for i in range(values.dim())])
        memory.view(bits)[places.reshape(-1)] = values.contiguous().view(bits).reshape(-1)
    return view


class Operands:
    """The arguments of one call of a dump, made anew for every run, since an operator may write them."""

    def __init__(self, dump, call):
        self.dump, self.call = dump, call
        self.operator = op_calls.find_operator(call)
        self._values = {}
        self.notes = []  # what could not be made as it was

    def values(self, argument):
        """The dumped values of a tensor argument; never written."""
        if argument.tensor not in self._values:
            self._values[argument.tensor] = self.dump.tensor(argument)
        return self._values[argument.tensor]

    def keep(self, tensor, values):
        """Values that stand for a tensor of the file."""
        self._values[tensor] = values

    def tensor_arguments(self):
        """[(place, argument)] of all tensors in the arguments, those in lists too."""
        found = []

        def walk(argument, place):
            if argument.kind == "tensor":
                found.append((place, argument))
            elif argument.kind == "list":
                for i, item in enumerate(argument.value):
                    walk(item, (*place, i))

        for i, argument in enumerate(self.call.args):
            walk(argument, (i,))
        return found

    def is_wide(self):
        """Whether float64 would change nothing."""
        kinds = [argument.dtype for _, argument in self.tensor_arguments()]
        kinds += [argument.value for argument in self.call.args if argument.kind == "dtype"]
        return all(wide_of(dtype) == dtype for dtype in kinds)

    def is_plain(self):
        return all(is_plain(argument) for _, argument in self.tensor_arguments())

    def make(self, setting):
        """(positional, keywords) of new tensors."""
        made = {}
        for kind, name in self.dump.rng.items():
            restore_generator(kind, self.dump.file.tensor(name), setting.device)

        def value_of(argument, schema_type, place):
            if argument.kind == "tensor":
                return self._tensor(argument, setting, place, made)
            if argument.kind == "list":
                return [value_of(item, schema_type, (*place, i)) for i, item in enumerate(argument.value)]
            if argument.kind == "dtype" and setting.dtype is not None:
                return self._type_in(argument.value, setting)
            return op_calls.plain_value(argument, schema_type, setting.device)

        return op_calls.bind(self.operator, self.call, value_of)

    def _type_in(self, dtype, setting):
        if setting.dtype is None or not (dtype.is_floating_point or dtype.is_complex):
            return dtype
        if dtype.is_complex:
            return torch.complex128 if setting.dtype == torch.float64 else dtype
        return setting.dtype

    def _tensor(self, argument, setting, place, made):
        twin = made.get(argument.same_as)
        if twin is not None and twin.shape == argument.sizes and not setting.reverse:
            return twin
        values = self.values(argument)
        values = values.to(self._type_in(values.dtype, setting))
        if setting.magnitudes and values.dtype.is_floating_point:
            values = values.abs()
        dimensions = setting.reverse.get(place)
        if dimensions is not None:
            values = values.flip(dimensions)
        values = values.to(setting.device)
        result = None
        if argument.strides and not setting.contiguous and not is_plain(argument):
            result = with_strides(values, argument.strides)
            if result is None and "slice" not in self.notes:
                self.notes.append(f"`{argument.name or argument.tensor}` was a slice of much memory: it is contiguous "
                                  "here")
        if result is None:
            result = values.clone(memory_format=torch.contiguous_format)
        made[argument.tensor] = result
        return result

    def run(self, setting):
        """The results of the operator; CannotRun where it does not run so."""
        positional, keywords = self.make(setting)
        with torch.no_grad():
            results = op_calls.call_operator(self.operator, positional, keywords)
        return [result.detach() for result in results]

    def largest(self):
        """Setting-free: a bound of what sums of this call add up, one a result; [] where the op has none."""
        try:
            wide = replace(Setting(), dtype=torch.float64, magnitudes=True)
            return [result.abs() for result in self.run(wide)]
        except op_calls.CannotRun:
            return []


def restore_generator(kind, state, device):
    """Sets the generator of a kind of device, where the op runs there."""
    if kind == "cpu":
        torch.set_rng_state(state)
    elif kind == torch.device(device).type:
        getattr(torch, kind).set_rng_state(state, device)


def available(device):
    """Whether tensors can be made on a device here."""
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        return False
    return True
