"""Programs on a terminal of their own, under numsan or without, and what their user types there."""
import io
import pathlib
import re

import pexpect
import run_numsan

PROGRAMS = pathlib.Path(__file__).parent / "programs"
PROMPT = r"\(Pdb\) "


def line_of(program, mark):
    return run_numsan.marked_line(PROGRAMS / program, mark)


def spawned(argv, environment, folder):
    environment = {"TERM": "dumb", "NO_COLOR": "1", **environment}
    return pexpect.spawn(argv[0], list(map(str, argv[1:])), cwd=str(folder), env=environment, timeout=90,
                         encoding="utf-8", dimensions=(50, 200), echo=False)


def on_terminal(command, folder, env=None, options=None):
    environment = {"PYTHONBREAKPOINT": "", **(env or {})}
    options = {"break": 1, "report": "none", **(options or {})}
    argv, environment = run_numsan.attached(command, options=options, env=environment)
    return spawned(argv, environment, folder)


def on_terminal_without_numsan(command, folder):
    return spawned(command, run_numsan.plain_environment({"PYTHONBREAKPOINT": ""}), folder)


class Session:
    """What is typed at the prompt of a program on a terminal, and what it answers."""

    def __init__(self, child, prompt=PROMPT):
        self.child, self.prompt = child, prompt
        self.child.logfile_read = io.StringIO()

    def stops(self, program, mark, function=None):
        """Waits for the prompt. It is in the frame of the marked line; returns what was printed since the last one."""
        self.child.expect(self.prompt)
        text = self.child.before
        place = rf"> \S*{program}\({line_of(program, mark)}\)"
        assert re.search(place if function is None else rf"{place}{re.escape(function)}\(\)", text), text
        return text

    def ask(self, command):
        self.child.sendline(command)
        self.child.expect(self.prompt)
        return self.child.before

    def interrupt(self):
        """^C, and once more if nothing came of it: Python drops one between its prompt and its wait for a line
        (plain pdb: 1 of 300 pressed at once on a busy processor)."""
        for _ in range(3):
            self.child.sendintr()
            if self.child.expect(["KeyboardInterrupt", pexpect.TIMEOUT], timeout=20) == 0:
                self.child.expect(self.prompt)
                return
        raise AssertionError("^C was pressed three times and nothing came of it")

    def go_on(self, command="continue"):
        self.child.sendline(command)

    def ends(self):
        """What was printed until the end, and the exit status."""
        self.child.expect(pexpect.EOF)
        text = self.child.before
        self.child.close()
        return text, self.child.exitstatus

    def printed(self):
        """All that the program has shown, without the carriage returns of a terminal."""
        return self.child.logfile_read.getvalue().replace("\r", "")
