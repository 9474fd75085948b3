"""Reads what a suite program says about itself: its story, its `# label:` lines and its line
markers."""
import ast
import difflib
import io
import re
import tokenize
from dataclasses import dataclass, field

MARKERS = ("BUG", "BUG-ALT", "PRE", "INTENDED")
PHASES = ("forward", "backward", "optimizer", "data", "comm", "load")
MECHANISMS = ("DOM", "SING", "DIV0", "OVF", "UDF", "INDET", "UNINIT", "DATA", "HYPER", "STATE",
              "KERN", "RACE", "HW", "PREC", "OPAQUE")
CATEGORIES = tuple(f"N{number}" for number in range(1, 10))
KINDS = ("nan", "+inf", "-inf", "zero")
DTYPES = ("fp64", "fp32", "fp16", "bf16", "fp8")
NEEDS = ("compile", "gloo", "worker")
FAMILIES = ("log", "exp", "div0", "domain", "mask", "data", "where", "slope", "custom_backward",
            "divergence", "optimizer_eps", "clip_ema", "init", "structure", "half", "bf16", "fp8",
            "compile", "collective", "muted", "underflow", "logsumexp")
# What a fix changed; README.md says what each means.
FIX_KINDS = ("clamp", "eps", "where", "mask", "stable_function", "reorder", "dtype", "scale", "config", "schedule",
             "init", "state", "data", "guard", "detach", "structure", "sync", "upgrade", "other")
LIBRARIES = ("transformers", "timm", "torchvision", "lightning", "gpytorch", "pyro", "torch_geometric", "einops",
             "torchmetrics", "kornia", "diffusers", "peft")
SEVERITIES = ("error", "warning")
LEVELS = ("none", "info", "warning")
OP_NAME = re.compile(r"(aten|c10d|prims|fbgemm|torchvision)::[a-z0-9_]+|external")
WORD = re.compile(r"[a-z0-9][a-z0-9_+.-]*")
THREAD = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+#[0-9]+|https?://[^ ]+")
PROSE = ("fix", "why")  # comments `# fix: some text`; more lines of one kind go on with it


class LabelError(Exception):
    """One thing that is wrong with a program's labels: what, in which file and line."""

    def __init__(self, path, line, message):
        super().__init__(f"{path}:{line}: {message}")


@dataclass
class Source:
    """A program as its author marked it. `labels` maps a key to (value, line)."""
    path: object
    story: str
    labels: dict = field(default_factory=dict)
    lines: dict = field(default_factory=dict)
    prose: dict = field(default_factory=dict)
    length: int = 0

    def fail(self, key, message):
        raise LabelError(self.path, self.labels.get(key, ("", 1))[1], message)

    def raw(self, key):
        if key not in self.labels:
            raise LabelError(self.path, 1, f"label `{key}` is missing")
        return self.labels[key][0]

    def one(self, key, allowed):
        """The value of a label that is one of a few words."""
        value = self.raw(key)
        if value not in allowed:
            self.fail(key, f"label {key}={value}: expected one of {', '.join(allowed)}"
                           f"{nearest(value, allowed)}")
        return value

    def some(self, key, allowed, at_least=0):
        """The values of a label that is a comma list of such words."""
        values = [part for part in self.raw(key).split(",") if part]
        for value in values:
            if value not in allowed:
                self.fail(key, f"label {key}: `{value}` is none of {', '.join(allowed)}"
                               f"{nearest(value, allowed)}")
        if len(values) < at_least or len(set(values)) != len(values):
            self.fail(key, f"label {key}={self.raw(key)}: expected {at_least} or more, each once")
        return values

    def flag(self, key):
        return self.one(key, ("yes", "no")) == "yes"

    def number(self, key):
        """A whole number; None where the program leaves it open."""
        value = self.raw(key)
        if not value:
            return None
        if not value.isdigit():
            self.fail(key, f"label {key}={value}: expected a whole number from 0")
        return int(value)

    def word(self, key):
        value = self.raw(key)
        if not WORD.fullmatch(value):
            self.fail(key, f"label {key}={value}: expected one word in lower case")
        return value

    def thread(self, key):
        value = self.raw(key)
        if not THREAD.fullmatch(value):
            self.fail(key, f"label {key}={value}: expected owner/repo#number or an address")
        return value

    def text(self, key):
        """The text of the comments `# key: ...`."""
        if not self.prose.get(key):
            raise LabelError(self.path, 1, f"the comment `# {key}: ...` is missing")
        return " ".join(self.prose[key])

    def ops(self, key):
        values = [part for part in self.raw(key).split(",") if part]
        for value in values:
            if not OP_NAME.fullmatch(value):
                self.fail(key, f"label {key}: `{value}` is no op name such as aten::log")
        if not values:
            self.fail(key, f"label {key} is empty")
        return values


def nearest(value, allowed):
    """`; did you mean X` where something close is allowed."""
    close = difflib.get_close_matches(value, allowed, 1)
    return f"; did you mean {close[0]}" if close else ""


def read_source(path, known_keys):
    """Parses one program; every label key must be one of `known_keys`."""
    text = path.read_text()
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise LabelError(path, error.lineno or 1, f"no Python: {error.msg}") from None
    story = (ast.get_docstring(tree) or "").strip()
    if not story or "\n" in story:
        raise LabelError(path, 1, "expected a docstring of one line that tells the story")
    source = Source(path, story, lines={marker: [] for marker in MARKERS})
    source.length = len(text.splitlines())
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            _read_comment(source, token, known_keys)
    return source


def _read_comment(source, token, known_keys):
    text, line = token.string.lstrip("#").strip(), token.start[0]
    if text.startswith("label:"):
        _read_labels(source, text[len("label:"):], line, known_keys)
        return
    first = text.split()[0].rstrip(":") if text else ""
    if first in PROSE and text.startswith(first + ":"):
        source.prose.setdefault(first, []).append(text[len(first) + 1:].strip())
        return
    if first not in MARKERS:
        return
    if text != first:
        raise LabelError(source.path, line, f"marker `# {first}` must be the whole comment")
    if not token.line[:token.start[1]].strip():
        raise LabelError(source.path, line, f"marker `# {first}` must stand at the end of code")
    source.lines[first].append(line)


def _read_labels(source, text, line, known_keys):
    for part in text.split():
        key, equals, value = part.partition("=")
        if not equals:
            raise LabelError(source.path, line, f"label `{part}` is not key=value")
        if key not in known_keys:
            raise LabelError(source.path, line,
                             f"label `{key}` is unknown{nearest(key, known_keys)}")
        if key in source.labels:
            raise LabelError(source.path, line, f"label `{key}` is given twice")
        source.labels[key] = (value, line)
