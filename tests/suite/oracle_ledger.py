"""Bookkeeping of the oracle: which storage holds a non-finite value, and which op made it."""
from dataclasses import dataclass, field

import torch
from torch.multiprocessing.reductions import StorageWeakRef

INFINITE = ("+inf", "-inf")
SKIPS = 4  # a scaler that skips this often in a row has met a bug
EXPECTED_PLACES = ("host", "buffer", "optimizer_state")  # where a chosen infinity may well go


def kinds_of(tensor):
    """Which of nan, +inf and -inf a tensor holds."""
    if not isinstance(tensor, torch.Tensor) or tensor.is_meta or tensor.layout != torch.strided:
        return set()
    if tensor.is_nested or tensor.numel() == 0:
        return set()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if not tensor.is_floating_point():
        return set()
    if tensor.element_size() == 1:
        tensor = tensor.float()
    tests = {"nan": torch.isnan, "+inf": torch.isposinf, "-inf": torch.isneginf}
    return {kind for kind, test in tests.items() if bool(test(tensor).any())}


def storage_of(tensor):
    """The storage of a tensor, None where it has none of its own."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


@dataclass
class Birth:
    """One op whose output was bad while what it read was not. `lines` are acceptable lines, best
    first."""
    number: int
    seq: int
    step: int
    op: str
    kind: str
    lines: list
    phase: str
    node: str = None
    intended: bool = False
    note: str = ""
    escapes: list = field(default_factory=list)


@dataclass
class Entry:
    """What is known of one storage."""
    weak: StorageWeakRef
    roots: dict = field(default_factory=dict)
    allocation: tuple = None
    touched: bool = False
    state: bool = False
    parameter: bool = False


class Ledger:
    """Storages, births and escapes of one run."""

    def __init__(self):
        self.entries = {}
        self.births = []
        self.seq = 0
        self.step = 0
        self.checks = 0
        self.caught = {}

    def entry(self, tensor):
        """The entry of a tensor's storage, made on first sight; None where it has no storage."""
        storage = storage_of(tensor)
        if storage is None:
            return None
        weak = StorageWeakRef(storage)  # keeps the address from being used again
        found = self.entries.get(weak.cdata)
        if found is None or found.weak.expired():
            found = self.entries[weak.cdata] = Entry(weak)
        if tensor.requires_grad:
            found.touched = True
            if tensor.is_leaf and tensor.is_floating_point():
                found.parameter = found.state = True
        return found

    def birth(self, op, kind, lines, phase, **more):
        seq, step = more.pop("seq", self.seq), more.pop("step", self.step)
        made = Birth(len(self.births), seq, step, op, kind, lines, phase, **more)
        self.births.append(made)
        return made.number

    def intended(self, number):
        return self.births[number].intended

    def heir(self, kind, roots):
        """The birth that explains `kind` in an output whose inputs hold `roots` {kind: set of
        births}; else None."""
        infinities = [n for sign in INFINITE for n in roots.get(sign, ())]
        blamed = [n for n in infinities if not self.intended(n)]
        if kind == "nan":
            candidates = roots.get("nan") or blamed
        else:
            candidates = [n for n in roots.get(kind, ()) if not self.intended(n)] \
                or roots.get(kind) or blamed or infinities or roots.get("nan")
        return min(candidates) if candidates else None

    def escape(self, tensor, into, name=None):
        """Notes that a tensor's bad values got somewhere that matters."""
        entry = self.entry(tensor)
        for kind in kinds_of(tensor):
            number = entry.roots.get(kind) if entry else None
            if number is None:
                phase = "load" if into in ("parameter", "buffer") else "data"
                number = self.birth("external", kind, [], phase, note="seen at its escape")
                if entry:
                    entry.roots[kind] = number
            birth = self.births[number]
            if birth.intended and kind != "nan" and into in EXPECTED_PLACES:
                continue
            if not any(known[0] == into for known in birth.escapes):
                birth.escapes.append((into, name, self.step))

    def scaled(self, gradients):
        """A loss scaler checks these gradients: what it skips is no escape, unless it skips on and
        on."""
        self.checks += 1
        for gradient in gradients:
            entry = self.entry(gradient)
            for kind in kinds_of(gradient):
                birth = self.births[entry.roots[kind]] if kind in entry.roots else None
                if birth is None or {place[0] for place in birth.escapes} != {"gradient"}:
                    continue
                checks = self.caught.setdefault((birth.op, tuple(birth.lines)), [])
                if self.checks not in checks:
                    checks.append(self.checks)
                if not set(range(self.checks - SKIPS, self.checks)) <= set(checks):
                    birth.escapes.clear()
                    birth.note = "caught by a loss scaler"

    def as_list(self):
        """The births, oldest first, without repetitions of the same op, line, kind and fate."""
        seen, result = set(), []
        for birth in sorted(self.births, key=lambda one: (one.seq, one.number)):
            key = (birth.op, tuple(birth.lines), birth.kind, birth.intended, bool(birth.escapes))
            if key not in seen:
                seen.add(key)
                result.append({**vars(birth)})
        return result
