"""Writes a program of less than 40 lines that needs torch alone and runs a dumped operator as the program did."""
import base64
import keyword
import os

import torch

import comparison
import op_calls
from operands import is_plain, needed_elements
from replay_document import clean
from verdicts import dtype_name, places

MOST_LISTED = 64  # values of a tensor that are written as numbers
MOST_INLINE = 4096  # bytes of one that are written into the program at all
MOST_OPERANDS = 12  # lines of them; what else there is stands in the call

READ = '''

def read(name):  # the bytes of a tensor in the dump, which is a safetensors file
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), {dump})
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        begin, end = json.loads(file.read(length))[name]["data_offsets"]
        file.seek(8 + length + begin)
        return bytearray(file.read(end - begin))

'''
STRIDED = '''

def strided(values, strides):
    memory = values.new_zeros(1 + sum((n - 1) * s for n, s in zip(values.shape, strides)))
    once = tuple(slice(0, 1) if s == 0 else slice(None) for s in strides)
    memory.as_strided(values.shape, strides)[once].copy_(values[once])
    return memory.as_strided(values.shape, strides)

'''
FOOTER = '''results = [(torch.view_as_real(r) if r.is_complex() else r).double()
           for r in {results} if isinstance(r, torch.Tensor)]
kinds = (torch.isnan, torch.isposinf, torch.isneginf, lambda r: r == 0)
found = [sum(int(kind(r).sum()) for r in results) for kind in kinds]
print("nan %d, +inf %d, -inf %d, zero %d; in the program %d, %d, %d, %d" % (*found, *{wanted}))
sys.exit(found != {wanted})
'''
MODULES = ("base64", "json", "os", "sys")
RESERVED = frozenset(("read", "strided", "torch", *MODULES, "result", "results", "found", "r", "f", "DEVICE"))


class Code(str):
    """An expression of Python where its value would be."""


def as_code(value):
    """An expression for a value that a dump holds."""
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return f'float("{value}")'
    if isinstance(value, complex):
        return f"complex({as_code(value.real)}, {as_code(value.imag)})"
    if isinstance(value, torch.device):
        return "torch.device(DEVICE)"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(as_code, value)) + "]"
    return ascii(value) if isinstance(value, str) else str(value)


def overlaps(sizes, strides):
    """Whether two values share an element, other than by being expanded."""
    reach = 1
    for stride, size in sorted((stride, size) for size, stride in zip(sizes, strides) if size > 1 and stride > 0):
        if stride < reach:
            return True
        reach += (size - 1) * stride
    return False


class ScriptWriter:
    """The text of the program for a Replay. `near` is the folder that it is written to, the dump's or another."""

    def __init__(self, replay, near):
        self.replay, self.dump, self.operands = replay, replay.dump, replay.operands
        self.name = os.path.relpath(os.path.abspath(self.dump.path), near)
        self.lines = []

    def text(self):
        wanted = comparison.counts(self.replay.reference)
        bad, zeros = sum(wanted.values()), comparison.zeros(self.replay.reference)
        title = f"{self.dump.op}: {places(bad)} of its result not finite" if bad else f"{self.dump.op}"
        call = self._call()
        body = [f"DEVICE = {ascii(self.replay.device)}", *self._settings(), *self.lines, "with torch.no_grad():",
                f"    result = {call}"]
        body += FOOTER.format(results=self._results(), wanted=[*wanted.values(), zeros]).splitlines()
        used = "\n".join(body)
        helpers = READ.format(dump=ascii(self.name)) if "read(" in used else ""
        helpers += STRIDED if "strided(" in used else ""
        modules = ", ".join(name for name in MODULES if f"{name}." in helpers + used)
        source = clean(os.path.basename(self.dump.path))
        made = f"# Made by `numsan replay --script` from {source}; exit status 0 where it happens again."
        head = [f"# {clean(title)}", made, f"import {modules}", "", "import torch"]
        text = "\n".join(head) + "\n" + (helpers or "\n").replace("\n\n\n\n", "\n\n\n") + "\n".join(body) + "\n"
        return text

    def _settings(self):
        lines = [f"torch.set_num_threads({self.dump.threads})"] if self.dump.threads else []
        for kind, name in self.dump.rng.items():
            if kind in ("cpu", torch.device(self.replay.device).type):
                setter = "torch.set_rng_state" if kind == "cpu" else f"torch.{kind}.set_rng_state"
                lines.append(f"{setter}(torch.frombuffer(read({ascii(name)}), dtype=torch.uint8))")
        return lines

    def _call(self):
        """The call of the operator; what it reads gets lines of its own, and a name."""
        self.names = {}

        def value_of(argument, schema_type, place):
            if argument.kind not in ("tensor", "list"):
                return Code(as_code(op_calls.plain_value(argument, schema_type, self.replay.device)))
            code = self._operand(argument, schema_type)
            if "torch." not in code or len(self.lines) >= MOST_OPERANDS:
                return Code(code)
            name = argument.name
            if not name.isidentifier() or keyword.iskeyword(name) or name in RESERVED:
                name = f"operand_{place[0]}"
            self.lines.append(f"{name} = {code}")
            return Code(name)

        positional, keywords = op_calls.bind(self.operands.operator, self.dump.op, value_of)
        while positional and not isinstance(positional[-1], Code):  # the schema has the same
            positional.pop()
        self.words = [as_code(value) for value in positional]
        given = [f"{name}={as_code(value)}" for name, value in keywords.items() if isinstance(value, Code)]
        namespace, _, op = self.dump.op.name.partition("::")
        return f"torch.ops.{namespace}.{op}.{self.dump.op.overload or 'default'}({', '.join(self.words + given)})"

    def _results(self):
        schema = self.operands.operator._schema
        if schema.returns:
            return "(result if isinstance(result, (list, tuple)) else [result])"
        written = [self.words[i] for i, argument in enumerate(schema.arguments)
                   if i < len(self.words) and argument.alias_info is not None and argument.alias_info.is_write]
        return f"[r for value in [{', '.join(written)}] for r in (value if isinstance(value, list) else [value])]"

    def _operand(self, argument, schema_type):
        if argument.kind == "list":
            return "[" + ", ".join(self._operand(item, schema_type) for item in argument.value) + "]"
        if argument.kind != "tensor":
            return as_code(op_calls.plain_value(argument, schema_type, self.replay.device))
        values = self.operands.values(argument)
        code = self._tensor(argument, values)
        if is_plain(argument) or overlaps(argument.sizes, argument.strides) or \
                needed_elements(argument.sizes, argument.strides) > 4 * values.numel() + (1 << 24):
            return code
        return f"strided({code}, {list(argument.strides)})"

    def _tensor(self, argument, values):
        dtype, sizes = f"torch.{dtype_name(values.dtype)}", list(values.shape)
        flat = values.reshape(-1)
        if not flat.numel():
            return f"torch.empty({sizes}, dtype={dtype}, device=DEVICE)"
        listed = not values.is_complex() and not bool(comparison.is_bad(values).any())
        bits = flat.view(torch.uint8)
        one = flat[:1].view(torch.uint8)
        if listed and bool((bits.reshape(-1, one.numel()) == one).all()):
            return f"torch.full({sizes}, {as_code(flat[0].item())}, dtype={dtype}, device=DEVICE)"
        if listed and flat.numel() <= MOST_LISTED:
            listing = [value.item() for value in flat]
            shape = "" if values.dim() == 1 else f".reshape({sizes})"
            return f"torch.tensor({listing}, dtype={dtype}, device=DEVICE){shape}"
        if bits.numel() <= MOST_INLINE:
            data = f'bytearray(base64.b64decode("{base64.b64encode(bytes(bits.tolist())).decode()}"))'
        else:
            data = f"read({ascii(argument.tensor)})"
        code = f"torch.frombuffer({data}, dtype=torch.uint8).view({dtype}).reshape({sizes})"
        return code if self.replay.device == "cpu" else f"{code}.to(DEVICE)"
