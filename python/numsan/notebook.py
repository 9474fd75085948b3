"""`%load_ext numsan`: what numsan finds, cell by cell.

    %%numsan            as the first line of a cell: runs the cell, then says what was found in it
    %numsan             what was found so far
    %numsan restart     starts the kernel again under numsan; what it holds is lost. Options may follow: tier=full

A kernel is watched from its start or not at all, as the library must be loaded before Python is.
"""
from __future__ import annotations

import os
import re
import sys
import typing

from IPython.core.error import StdinNotImplementedError, UsageError

from . import _command, _library, _news, _show

if typing.TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

CELL_MAGIC = re.compile(r"%%numsan[ \t]*\n?$")
BEGIN = "get_ipython().run_line_magic('numsan', '--cell')\n"  # in the place of the first line: lines keep their numbers
REPLY_SECONDS = 0.5  # for the reply of the cell that asks for the restart to leave
OPTIONS = re.compile(r"[a-z_]+=\S*")


class Front:
    """One per shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.news = _news.News()
        self.in_cell = False

    def transform(self, lines: list[str]) -> list[str]:
        """The cell stays one cell: its result is shown, it may `await`, and errors are its own."""
        first = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
        if first == len(lines) or not CELL_MAGIC.match(lines[first]):
            return lines
        return [*lines[:first], BEGIN, *lines[first + 1:]]

    def magic(self, text: str) -> None:
        """`%numsan`: what was found so far. `%numsan restart [OPTIONS]`: the kernel starts again under numsan."""
        words = text.split()
        if words == ["--cell"]:
            self.begin()
        elif words[:1] == ["restart"] and all(OPTIONS.fullmatch(word) for word in words[1:]):
            self.restart(":".join(words[1:]))
        elif words:
            raise UsageError("%numsan: expected nothing, or `restart` and options such as tier=full")
        else:
            report = _library.report()
            if report is None:
                raise UsageError(self.missing())
            found = report["findings"]
            print("\n\n".join([*([_show.text(report, found)] if found else []), counted(len(found), "so far")]))

    def missing(self) -> str:
        if _library.is_preloaded():
            return "numsan is loaded, and watches from `import torch` on"
        if getattr(self.shell, "kernel", None) is None:
            return "numsan is not loaded: start with `numsan run -- ipython`"
        return "this kernel runs without numsan: `%numsan restart` starts it again under it; what it holds is lost"

    def begin(self) -> None:
        if not _library.is_preloaded():
            if getattr(self.shell, "kernel", None) is not None and agreed():
                self.restart("")
                raise UsageError("this cell was not run")
            raise UsageError(self.missing())
        self.news.take()
        self.in_cell = True

    def end(self, _result: object = None) -> None:
        """After a cell. The text of a finding is on stderr, which a kernel shows in the cell."""
        if not self.in_cell:
            _library.decide()
            return
        self.in_cell = False
        found = self.news.take()[1]
        for finding in found:
            print(_show.line(finding))
        print(counted(len(found), "in this cell"))

    def restart(self, options: str) -> None:
        kernel, command = getattr(self.shell, "kernel", None), _command.command()
        if kernel is None:
            raise UsageError("this is no kernel: start with `numsan run -- ipython`")
        if command is None:
            raise UsageError("the command `numsan` was found neither beside this package nor on PATH")
        environment = {**os.environ, "NUMSAN_OPTIONS": options or os.environ.get("NUMSAN_OPTIONS", "")}
        # The same process under the same connection: whoever talks to the kernel goes on.
        words = [command, "run", "--", sys.executable, *sys.orig_argv[1:]]
        kernel.io_loop.call_later(REPLY_SECONDS, become, words, environment)
        print("numsan: the kernel starts again under numsan; run the cells again")


def become(words: list[str], environment: dict[str, str]) -> None:
    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        stream.flush()
        own = getattr(stream, "_original_stdstream_copy", None)  # a kernel reads what is written to descriptors
        if own is not None:
            os.dup2(own, descriptor)
    os.execve(words[0], words, environment)


def agreed() -> bool:
    """Whether the person at the notebook wants it; nobody is there where nothing can be asked."""
    try:
        answer = input("start this kernel again under numsan? all variables are lost [y/N] ")
        return answer.strip().lower() in ("y", "yes")
    except (EOFError, StdinNotImplementedError):
        return False


def counted(number: int, where: str) -> str:
    return f"numsan: {number or 'no'} {'finding' if number <= 1 else 'findings'} {where}"


_fronts: dict[int, Front] = {}  # by the shell's id


def load(shell: InteractiveShell) -> None:
    front = _fronts[id(shell)] = Front(shell)
    shell.input_transformers_cleanup.insert(0, front.transform)
    shell.register_magic_function(front.magic, "line", "numsan")  # type: ignore[arg-type]
    shell.events.register("post_run_cell", front.end)


def unload(shell: InteractiveShell) -> None:
    front = _fronts.pop(id(shell), None)
    if front is not None:
        shell.input_transformers_cleanup.remove(front.transform)
        shell.events.unregister("post_run_cell", front.end)
        shell.magics_manager.magics["line"].pop("numsan", None)
