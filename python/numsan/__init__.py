"""numsan, a numerical sanitizer for PyTorch training.

The command does the work, and a program need not import anything. One that wants to ask or to tell something may, and
behaves as before where numsan is not attached: every call does nothing then, which is said once on stderr.

    import numsan

    with numsan.ignore():          # what happens here is meant
        scores = torch.log(mask)
    numsan.step(loss=loss)         # in a loop that updates without torch.optim
    try:
        loss.backward()
    except numsan.NumericalError:  # with break=1
        pass
    if numsan.check():             # findings so far
        print(numsan.findings()[0]["title"])

All of it may be called from any thread.
"""
from __future__ import annotations

import contextlib
import typing
from collections.abc import Iterator

from . import _library
from ._errors import NumericalError

if typing.TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["Finding", "NumericalError", "attached", "check", "findings", "ignore", "step"]

Finding = dict[str, typing.Any]
"""One finding as the JSON report has it: `code`, `title`, `severity`, `location`, `op`, `step` and the rest."""


def attached() -> bool:
    """True where numsan watches this process: the library was preloaded and torch is imported."""
    return _library.report() is not None


def check(*, decide: bool = False) -> int:
    """The number of findings so far; 0 where numsan is not attached.

    Some values wait for what the program does next, and are not among them yet: a bad gradient that no optimizer has
    taken up, a number that the program only read. `decide=True` decides these now, as at the end of the program. It may
    wait for a GPU.
    """
    if decide and _library.is_attached_or_says_so():
        _library.decide()
    return len(findings())


def findings() -> list[Finding]:
    """The findings so far, in the order in which their bad values were made; at most `max_findings` are kept.

    Each is a dictionary of its own, with what the JSON report says: `step` counts finished optimizer steps from 0,
    `seq` operators from 0, `location` has the file (absolute) and the line (from 1).
    """
    report = _library.report() if _library.is_attached_or_says_so() else None
    return [] if report is None else list(report["findings"])


@contextlib.contextmanager
def ignore() -> Iterator[None]:
    """What this thread computes inside is meant, and is not reported; also a decorator.

    The same as `torch.profiler.record_function("numsan:ignore")`. Blocks may be nested. Each ends on the thread that it
    began on: an `async` function must not wait inside.
    """
    if not _library.is_attached_or_says_so():
        yield
        return
    _library.scope("numsan:ignore", True)
    try:
        yield
    finally:
        _library.scope("numsan:ignore", False)


def step(loss: typing.Any = None) -> None:
    """A training step is over, in a loop that updates parameters without `torch.optim`.

    The report counts steps by it. An optimizer of `torch.optim` announces its own steps; with one in the loop this is
    part of the same step.

    `loss`: of this step, a number or a tensor of one element; its magnitude tells an overflow by divergence from a
    sudden one where no backward pass shows it. A tensor on the CPU is read as `float(loss)` would read it; one of a
    device is not, as that would wait for the device.
    """
    if not _library.is_attached_or_says_so():
        return
    value = _number(loss)
    if value is not None:
        _library.scope(f"numsan:loss#{value!r}", True)
        _library.scope(f"numsan:loss#{value!r}", False)
    _library.scope("Optimizer.step#numsan.step", True)
    _library.scope("Optimizer.step#numsan.step", False)


def _number(loss: typing.Any) -> float | None:
    if loss is None or getattr(getattr(loss, "device", None), "type", "cpu") != "cpu":
        return None
    try:
        return float(loss.detach() if hasattr(loss, "detach") else loss)
    except (TypeError, ValueError, RuntimeError):
        return None  # not one number: where numsan is not attached nothing is raised either


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext numsan`: see numsan.notebook."""
    from . import notebook
    notebook.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """`%unload_ext numsan`."""
    from . import notebook
    notebook.unload(shell)
