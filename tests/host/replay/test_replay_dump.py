"""What `numsan replay DUMP` prints, as text and JSON, and its exit statuses."""
import json
import os
import subprocess

import pytest
import torch

import replay_path  # noqa: F401
import dump_maker
import replay_dump
import run_numsan

HELP = ["bound the operand from below: `x.clamp(min=1e-12).log()`",
        "use `x.log1p()` where the data hold zeros, counts for instance", "divide the learning rate by ten"]
TEXT = """\
{path}: aten::log of self float32[4], on cpu
  finding                 NS101 `aten::log` of 0
  line                    train.py:7
  in the program          float32[4]  nan 1  +inf 0  -inf 1  first at [0]
  on cpu again            the same, bit by bit
  repeated 8 times        the same, bit by bit
  in float64              the same values
  operands reversed       the same, bit by bit
reproduced: 2 values are not finite, the same as in the program
none of KERN, PREC, RACE and HW is what this shows
note: float64 has the same non-finite values: the operands make them, not the type
help: bound the operand from below: `x.clamp(min=1e-12).log()`
    tried: finite; the 2 healthy values change by at most 0; gradient finite
help, not tried: divide the learning rate by ten
    it acts on other steps than the dumped one
no help here: use `x.log1p()` where the data hold zeros, counts for instance
    tried, and does not help: 1 value is still not finite; gradient finite
script: {script}
"""


@pytest.fixture
def dump(tmp_path):
    x = torch.tensor([0.0, -2.0, 1.0, 1.0]).requires_grad_()
    return dump_maker.make_dump(tmp_path / "numsan-1-1.safetensors", "aten::log", [x], finding={
        "title": "`aten::log` of 0", "help": HELP, "location": {"file": "train.py", "line": 7}})


def test_the_text(dump, tmp_path, capsys):
    script = tmp_path / "repro.py"
    assert replay_dump.main([str(dump), "--try", "--script", str(script)]) == 0
    assert capsys.readouterr().out == TEXT.format(path=dump, script=script)
    assert script.read_text().startswith("# aten::log: 2 values of its result not finite\n")
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".numsan")]


def test_the_json(dump, tmp_path, capsys):
    output = tmp_path / "shown.json"
    assert replay_dump.main([str(dump), "--try", "--format", "json", "--output", str(output)]) == 0
    assert capsys.readouterr().out == ""
    shown = json.loads(output.read_text())
    assert shown["schema"] == "numsan.replay/1" and shown["reproduced"] is True and shown["op"] == "aten::log"
    assert shown["result"] == {"in_program": True, "bad_values": 2, "first_bad": [0, 0], "nan": 1, "pos_inf": 0,
                               "neg_inf": 1}
    assert {run["name"]: run.get("agrees") for run in shown["runs"]} == {
        "again": "bits", "repeats": "bits", "float64": "tolerance", "reversed": "bits"}
    assert [line["judgement"] for line in shown["help"]] == ["helps", "failed", "not_tried"]
    assert shown["help"][0]["healthy_values"] == 2 and shown["mechanisms"] == []


def test_not_reproduced(tmp_path, capsys):
    path = dump_maker.make_dump(tmp_path / "a.safetensors", "aten::exp", [torch.zeros(2)],
                                results=[torch.tensor([float("nan"), 1.0])])
    assert replay_dump.main([str(path)]) == 1
    out = capsys.readouterr().out
    assert "not reproduced: 1 of 1 value that was not finite is finite on cpu\nNS113 HW device-dependent: " in out


def test_text_of_a_stranger_moves_no_cursor(tmp_path, capsys):
    path = dump_maker.make_dump(tmp_path / "a.safetensors", "aten::log", [torch.zeros(2)],
                                finding={"title": "\x1b[2Jgone\nreproduced: no", "help": ["\x1b[31mred"]})
    assert replay_dump.main([str(path), "--try"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\nreproduced: no" not in out


@pytest.mark.parametrize("words, said", [
    (["none.safetensors"], "none.safetensors: expected a file that can be read"),
    (["a.safetensors", "--script", "none/x.py"], "none"),
])
def test_what_cannot_be_done(words, said, dump, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.rename(dump, "a.safetensors")
    assert replay_dump.main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("numsan: ") and said in captured.err
    assert len(captured.err.splitlines()) == 1


def command(*words, **env):
    return subprocess.run([run_numsan.COMMAND, "replay", *map(str, words)], capture_output=True, text=True,
                          env={**run_numsan.plain_environment(), "NUMSAN_PYTHON": run_numsan.PYTHON, **env})


def test_the_command(build, dump, tmp_path):
    """From outside, also where numsan is preloaded and paths of Python are not searched."""
    script = tmp_path / "repro.py"
    done = command(dump, "--try", "--script", script, LD_PRELOAD=str(run_numsan.LIBRARY), PYTHONSAFEPATH="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == TEXT.format(path=dump, script=script)
    assert not list((run_numsan.BUILD / "lib" / "replay").glob("__pycache__"))


def test_a_python_without_torch(build, dump, tmp_path):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    done = command(dump, NUMSAN_PYTHON=str(python))
    assert done.returncode == 2 and done.stderr == (
        f"numsan: a dump is replayed by a python that has torch: there is no torch in {python}; "
        "NUMSAN_PYTHON=/path/to/python names another\n")


def test_the_python_of_the_program_is_named_and_not_started(build, tmp_path):
    """Whoever made the dump would choose what runs."""
    without, own = tmp_path / "python3", tmp_path / "own-python"
    without.write_text("#!/bin/sh\nexit 1\n")
    own.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    for python in (without, own):
        python.chmod(0o755)
    path = dump_maker.make_dump(tmp_path / "a.safetensors", "aten::log", [torch.zeros(2)], interpreter=str(own))
    done = command(path, NUMSAN_PYTHON=str(without))
    assert done.returncode == 2 and done.stderr.endswith(f"; NUMSAN_PYTHON={own} names the one that ran the program\n")
    own.unlink()
    done = command(path, NUMSAN_PYTHON=str(without))
    assert done.stderr.endswith("; NUMSAN_PYTHON=/path/to/python names another\n"), done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_python_that_dies(build, dump, tmp_path):
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\nif [ "$1" = -c ]; then exit 0; fi\nkill -SEGV $$\n')
    python.chmod(0o755)
    done = command(dump, NUMSAN_PYTHON=str(python))
    assert done.returncode == 2 and done.stderr == f"numsan: {dump}: python died of signal 11 while it ran the op\n"


def test_a_recording_takes_no_settings_of_a_dump(build, tmp_path):
    path = tmp_path / "run.rec"
    path.write_bytes(b"NUMSAN-RECORDING\x01")
    done = command(path, "--try")
    assert done.returncode == 2 and "expected a dump for --try, --script and --format" in done.stderr


def test_wrong_usage(build, dump):
    for words in ([], [dump, "--format", "xml"], [dump, "--tries"]):
        assert command(*words).returncode == 2
