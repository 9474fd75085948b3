"""numsan report and a watched program on a terminal, made by a pty: colour and width are its own, files get neither."""
import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import termios

import pytest
import run_numsan

EXAMPLE = pathlib.Path(__file__).parent / "golden/example_report.json"
INK = re.compile(r"\x1b\[[0-9;]*m")
BUG = "import torch\nw = torch.nn.Parameter(torch.ones(2))\n(-w).log().sum().backward()\nprint('done')\n"


def read_to_end(end):
    chunks = []
    while True:
        try:
            chunk = os.read(end, 65536)
        except OSError:  # what Linux says when nobody has the other end open
            chunk = b""
        if not chunk:
            os.close(end)
            return b"".join(chunks).decode().replace("\r\n", "\n")
        chunks.append(chunk)


def on_terminal(command, columns, stream, environment):
    """What `command` writes to a terminal of that width, as its stdout or stderr."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    others = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: theirs}
    process = subprocess.Popen(list(map(str, command)), env=environment, **others)
    os.close(theirs)
    text = read_to_end(ours)
    assert process.wait(timeout=60) == 0, text
    return text


def variables(**more):
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "LD_PRELOAD", "TERM")}
    return {**kept, "TERM": "xterm", **more}


def shown(*arguments, columns=0, **environment):
    command = [run_numsan.COMMAND, "report", EXAMPLE, *arguments]
    return on_terminal(command, columns, "stdout", variables(**environment))


def piped(*arguments, **environment):
    done = subprocess.run([run_numsan.COMMAND, "report", EXAMPLE, *arguments], capture_output=True, text=True,
                          env=variables(**environment), timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_terminal_is_coloured_and_a_pipe_is_not(build):
    assert not INK.search(piped())
    text = shown()
    assert text.startswith("\x1b[1;31merror[NS102]\x1b[0m: ")
    assert INK.sub("", text) == piped()


@pytest.mark.parametrize("arguments, environment, coloured", [
    ([], {"NO_COLOR": "1"}, False),
    ([], {"NO_COLOR": ""}, True),  # no-color.org: when present and not an empty string
    ([], {"TERM": "dumb"}, False),
    (["--color", "never"], {}, False),
    (["--color", "always"], {"NO_COLOR": "1"}, True),
    (["--color", "auto"], {"NO_COLOR": "1"}, False),
], ids=str)
def test_who_decides_about_colour(build, arguments, environment, coloured):
    assert bool(INK.search(shown(*arguments, **environment))) == coloured


def test_always_colours_a_pipe(build):
    assert piped("--color", "always") == shown()


@pytest.mark.parametrize("columns", [40, 60, 80, 119])
def test_rows_are_wrapped_at_the_width_of_the_terminal(build, columns):
    """Only between words, and nothing is lost. Columns of figures stay in their rows."""
    wide, text = INK.sub("", shown(columns=1000)), INK.sub("", shown(columns=columns))
    assert wide == piped() and text.split() == wide.split()
    rows = {}  # label: its lines
    for line in text.splitlines():
        if match := re.match(r"   = (\w+): ", line):
            label = match[1]
            rows[label] = [line]
        elif line.startswith(" " * 13) and line.strip():
            rows[label].append(line)
        else:
            label = None
    for label in ("when", "escaped", "category", "because"):
        for line in rows[label]:
            assert len(line) <= columns or len(line.split()) == 1, line
        whole = next(line for line in wide.splitlines() if f"= {label}: " in line)
        assert (len(rows[label]) > 1) == (len(whole) > columns), label


def test_watched_program_on_a_terminal(warm, tmp_path):
    program = tmp_path / "buggy.py"
    program.write_text(BUG)
    told = {}
    for name, options, no_color in [("auto", {}, ""), ("no_color", {}, "1"), ("never", {"color": "never"}, "")]:
        command, environment = run_numsan.attached([run_numsan.PYTHON, program], options=options,
                                                   env={"NO_COLOR": no_color, "TERM": "xterm"},
                                                   report=tmp_path / f"{name}.json")
        told[name] = on_terminal(command, 70, "stderr", environment)
    assert told["auto"].startswith("\x1b[1;31merror[NS101]\x1b[0m: "), told["auto"]
    assert "\x1b[1mnumsan\x1b[0m: 1 finding" in told["auto"]
    assert not INK.search(told["no_color"]) and not INK.search(told["never"])
    assert told["no_color"].replace("no_color.json", "never.json") == told["never"]
    assert INK.sub("", told["auto"]).replace("auto.json", "never.json") == told["never"]
    rows = re.findall(r"^   = (?:when|escaped|category|because):.*|^ {15}\S.*", told["never"], re.M)
    assert rows and all(len(line) <= 70 for line in rows), rows
