"""What `break=1` raises in a program."""
from __future__ import annotations

import sys
import typing


class NumericalError(RuntimeError):
    """A value that is not finite got into something that matters, where nobody sits at a terminal.

    Raised by the operator that runs when that is certain, once a finding, and only with `break=1`: elsewhere nothing
    raises it. Its text names the line that made the value.

    finding  the finding as the report has it: `code`, `title`, `location` and the rest
    inputs   what the operator that made the value was called with; empty where that was not kept
    outputs  what it wrote
    """

    __module__ = "numsan"
    finding: dict[str, typing.Any] = {}
    inputs: tuple[typing.Any, ...] = ()
    outputs: tuple[typing.Any, ...] = ()


# The library raises this class where the package was imported before torch, and else has made one of its own.
if not typing.TYPE_CHECKING:
    NumericalError = getattr(sys.modules.get("_numsan"), "NumericalError", NumericalError)
