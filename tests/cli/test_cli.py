"""The numsan executable from outside: exit statuses, messages, environment.

NUMSAN_BUILD names the build folder (build/).
"""

import json
import os
import pathlib
import subprocess

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUMSAN = pathlib.Path(os.environ.get("NUMSAN_BUILD", ROOT / "build")) / "bin" / "numsan"
SCHEMA = json.loads((ROOT / "host/report/report.schema.json").read_text())


def minimal_report():
    return {
        "schema": "numsan.report/1",
        "tool": {"name": "numsan", "version": "0.1.0", "commit": None},
        "run": {"id": "x", "argv": [], "cwd": "/", "pid": 1, "host": "h", "rank": None, "started": "s", "ended": None,
                "exit_status": None, "framework": None, "python": None, "devices": [], "options": {}, "tier": "full",
                "steps": 3},
        "coverage": {"ops": 12345, "scanned": 1000, "bytes": 0, "skipped": {}, "dropped": 0, "blind_spots": []},
        "cost": {"wall_s": 1, "hook_s": None, "scan_s": None, "host_bytes": None, "device_bytes": None},
        "verdict": "clean", "findings": [], "noted": {"births": 0, "escaped": 0, "absorbed": 0}, "suppressed": [],
    }


def numsan(*args, **env):
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "NUMSAN_OPTIONS")}
    return subprocess.run([NUMSAN, *map(str, args)], capture_output=True, text=True, env={**clean, **env})


@pytest.mark.parametrize("args, words", [
    (["run", "--tier", "fulll", "--", "true"], ["tier", "fulll", "did you mean 'full'"]),
    (["run", "--tirr=full", "--", "true"], ["tirr", "did you mean '--tier'"]),
    (["run", "--report", "a:b", "--", "true"], ["report", "a:b"]),
    (["run"], ["no command"]),
    (["reprot"], ["did you mean 'report'"]),
    (["merge", "/nonexistent"], ["/nonexistent", "No such file"]),
    (["report", "--format", "pdf", "x"], ["format 'pdf'", "openmetrics"]),
    (["diff", "a"], ["NEW is required"]),
    (["report", "/nonexistent"], ["/nonexistent", "No such file"]),
    (["explain", "NS999"], ["nearest"]),
    ([], ["subcommand"]),
])
def test_usage_errors_are_one_line_and_status_2(args, words):
    result = numsan(*args)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


def test_bad_flag_starts_nothing(tmp_path):
    numsan("run", "--tier", "fulll", "--", "touch", tmp_path / "started")
    assert not (tmp_path / "started").exists()


def test_run_sets_environment_and_keeps_status():
    script = 'echo "$LD_PRELOAD|$NUMSAN_OPTIONS|$1"; exit 7'
    result = numsan("run", "--tier=full", "--max_findings", 3, "--", "sh", "-c", script, "x", "--lr",
                    NUMSAN_OPTIONS="tier=off:log=none")
    preload, options, argument = result.stdout.strip().split("|")
    assert result.returncode == 7
    assert preload.endswith("/libnumsan.so")
    assert options == "tier=off:log=none:tier=full:max_findings=3"
    assert argument == "--lr"


def test_run_under_run_preloads_once():
    result = numsan("run", NUMSAN, "run", "sh", "-c", "echo $LD_PRELOAD")
    assert result.stdout.count("libnumsan.so") == 1


@pytest.mark.parametrize("command, status", [("/nonexistent/program", 127), ("/", 126)])
def test_run_fails_as_a_shell_does(command, status):
    result = numsan("run", "--", command)
    assert result.returncode == status
    assert command in result.stderr


def test_report_text_and_json(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(minimal_report()))
    assert "no finding in 3 steps; 1 000 of 12 345 ops scanned" in numsan("report", path).stdout
    out = tmp_path / "out.json"
    assert numsan("report", path, "--format", "json", "-o", out).returncode == 0
    jsonschema.validate(json.loads(out.read_text()), SCHEMA)
    assert json.loads(out.read_text()) == minimal_report()


def test_report_refuses_damage_with_the_byte(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(minimal_report())[:200])
    result = numsan("report", path)
    assert result.returncode == 2
    assert "byte 201" in result.stderr


def test_explain_by_code_and_slug():
    assert numsan("explain", "ns102").stdout == numsan("explain", "SING").stdout != ""
    assert "Undefined or unbounded derivative" in numsan("explain", "unsafe-gradient").stdout


def test_doctor_without_compiler_and_python_cannot_work(tmp_path):
    result = numsan("doctor", "--", "/nonexistent/python", PATH=str(tmp_path))
    assert result.returncode == 2
    assert "compiler: none of" in result.stdout
    assert "/nonexistent/python is not there" in result.stdout
