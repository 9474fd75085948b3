# What is known where a program stopped: `_numsan` at the prompt. `core_history`, `core_again`, `core_dump` and
# `core_replay` are there already: see interpose/python/debugger.cpp.
import sys

__name__ = '_numsan'


class NumericalError(RuntimeError):
    """A value that is not finite got into something that matters: raised by break=1 where no terminal is there.

    finding  the finding as the report has it
    inputs   what the operator that made the value was called with: tensors; empty where they were not kept
    outputs  what it wrote
    """

    finding = {}
    inputs = outputs = ()


def error_class():
    """The one of python/numsan where the program has imported that already: it may have named it in an `except`."""
    known = getattr(sys.modules.get('numsan'), 'NumericalError', None)
    return known if isinstance(known, type) and issubclass(known, RuntimeError) else NumericalError


NumericalError = error_class()


def values_of(parts):
    """What the core describes: see Parts in interpose/python/debugger.cpp."""
    import torch

    def value_of(part):
        if isinstance(part, int):
            return torch.ops.numsan.tensors_at([part])[0]
        kind, *rest = part
        if kind == 'value':
            return rest[0]
        if kind == 'list':
            return [value_of(item) for item in rest[0]]
        if kind == 'name':
            return getattr(torch, rest[0], rest[0])
        return torch.ops.numsan.kept_at(*rest) if kind == 'kept' else None

    try:
        with torch.no_grad():
            return tuple(value_of(part) for part in parts)
    except (RuntimeError, MemoryError, TypeError):
        return ()  # the program is not to end because of it


class Health(list):
    """Rows of health(), shown as a table."""

    def __repr__(self):
        def shown(value):
            return '-' if value is None else f'{value:.6g}' if isinstance(value, float) else str(value)

        columns = ('name', 'kind', 'shape', 'dtype', 'min_abs', 'max_abs', 'nan', 'inf')
        rows = [columns] + [tuple(shown(row[column]) for column in columns) for row in self]
        widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
        return '\n'.join('  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def health_of(name, kind, tensor):
    """One row: magnitudes are those of its finite values."""
    import torch
    row = dict(name=name, kind=kind, shape=tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix('torch.'),
               min_abs=None, max_abs=None, nan=None, inf=None)
    try:
        values = tensor.detach()
        values = values.abs().double() if values.is_complex() else values.double().abs()
        row['nan'], row['inf'] = int(values.isnan().sum()), int(values.isinf().sum())
        values = values[values.isfinite()]
        if values.numel():
            row['min_abs'], row['max_abs'] = float(values.min()), float(values.max())
    except RuntimeError:
        pass  # it has no values: on the meta device, of a sparse or quantized layout
    return row


def named_tensors(frame):
    """(name, kind, tensor) of all parameters, their gradients and buffers that are alive."""
    import gc
    import torch
    things = [thing for thing in gc.get_objects() if torch.nn.Module in type(thing).__mro__
              or torch.Tensor in type(thing).__mro__]
    modules = [thing for thing in things if isinstance(thing, torch.nn.Module)]
    inner = {id(child) for module in modules for child in module._modules.values() if child is not None}
    variables = {}
    while frame is not None:
        for scope in (frame.f_locals, frame.f_globals):
            for name, value in list(scope.items()):
                if torch.nn.Module in type(value).__mro__ or torch.Tensor in type(value).__mro__:
                    if name != 'self':
                        variables.setdefault(id(value), name)
        frame = frame.f_back
    found, seen = [], set()

    def add(name, kind, tensor):
        if tensor is None or id(tensor) in seen:
            return
        seen.add(id(tensor))
        found.append((name, kind, tensor))
        gradient = tensor.grad if kind == 'parameter' and tensor.is_leaf else None
        if gradient is not None:
            add(name + '.grad', 'gradient', gradient)

    for module in modules:
        if id(module) in inner:
            continue
        prefix = variables.get(id(module), type(module).__name__) + '.'
        for name, parameter in module.named_parameters():
            add(prefix + name, 'parameter', parameter)
        for name, buffer in module.named_buffers():
            add(prefix + name, 'buffer', buffer)
    for thing in things:
        if isinstance(thing, torch.Tensor) and thing.is_leaf and thing.requires_grad:
            add(variables.get(id(thing), 'unnamed'), 'parameter', thing)
    return found


class Text(str):
    """Shown at a prompt as it is."""

    __repr__ = str.__str__


def tried_help():
    """What `numsan replay --try` says of the call: in a process of its own, where the program's tensors are copies."""
    import os
    import subprocess
    import tempfile
    import torch
    paths = [os.environ.get('PYTHONPATH', ''), os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))]
    environment = {**os.environ, 'NUMSAN_DISABLE': '1', 'PYTHONPATH': os.pathsep.join(filter(None, paths))}
    environment.pop('PYTHONSAFEPATH', None)  # the program's folder has its modules
    with tempfile.TemporaryDirectory(prefix='numsan-') as folder:
        dump = os.path.join(folder, 'dump')
        problem = core_dump(os.fsencode(dump)).decode(errors='replace')
        if problem:
            raise LookupError(problem)
        ran = subprocess.run([sys.executable, '-B', os.fsdecode(core_replay), '--try', '--', dump], env=environment,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace')
    if ran.returncode not in (0, 1) or not ran.stdout:  # 1: not reproduced, which the text says
        raise RuntimeError(f'{sys.executable} ended with {ran.returncode}: {ran.stderr.strip()}')
    return Text(ran.stdout.rstrip())


class Stopped:
    """What is known where the program stopped; `_numsan` at the prompt.

    inputs, outputs  what the operator was called with and what it wrote
    finding          the finding as a dictionary, as far as it is known
    history(name)    the largest magnitudes of a tensor: (step, magnitude), oldest first; without a name those of the
                     finding. A name as health() has it, that of a variable, or a tensor
    health()         all live parameters, gradients and buffers
    try_fix()        each line of help, tried on copies of the operands: whether it helps, and what it changes
    again()          this line stops again
    NumericalError   what break=1 raises where no terminal is there
    """

    NumericalError = NumericalError

    def __init__(self, finding, inputs, outputs, frame, place):
        self.finding, self.inputs, self.outputs = finding, inputs, outputs
        self._frame, self._place = frame, place

    def __repr__(self):
        return f'{self.finding.get("code", "")}: {self.finding.get("title", "")}\n{type(self).__doc__}'

    def history(self, name=None):
        import torch
        if name is None:
            return [(past['step'], past['absmax']) for past in self.finding.get('history', ())]
        tensor = name
        if isinstance(name, str):
            tensor = next((tensor for own, _, tensor in named_tensors(self._frame) if own == name), None)
            if tensor is None:
                tensor = self._frame.f_locals.get(name, self._frame.f_globals.get(name))
        if not isinstance(tensor, torch.Tensor):
            raise LookupError(f'{name!r} is no tensor here: health() has the names')
        lines = core_history(tensor.untyped_storage()._cdata).splitlines()
        return [(int(step), None if value == 'none' else float(value)) for step, value in map(str.split, lines)]

    def health(self):
        import torch
        with torch.no_grad():
            return Health(health_of(*named) for named in named_tensors(self._frame))

    def try_fix(self):
        import builtins
        if vars(builtins).get('_numsan') is not self:
            raise LookupError('the program has gone on since')
        return tried_help()

    def again(self):
        core_again(self._place)


def frame_of(innermost, file, line, index):
    """The frame `index` frames out, if it runs that file; else the innermost one at that line."""
    frames = []
    while innermost is not None:
        frames.append(innermost)
        innermost = innermost.f_back
    if index < len(frames) and frames[index].f_code.co_filename == file:
        return frames[index]
    at_line = [frame for frame in frames if (frame.f_code.co_filename, frame.f_lineno) == (file, line)]
    return (at_line or frames)[0]
