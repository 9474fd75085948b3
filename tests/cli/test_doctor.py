"""numsan doctor with the torch of the tests: what it says of operations and lines is what a run under numsan showed."""
import os
import re
import subprocess

import run_numsan


def doctor(*command, **env):
    environment = {**os.environ, "NUMSAN_CACHE": str(run_numsan.CACHE), **env}
    return subprocess.run([run_numsan.COMMAND, "doctor", *command], capture_output=True, text=True, env=environment,
                          timeout=420)


def lines(result):
    """{subject: (mark, text)}"""
    rows = re.findall(r"^(ok|limited|broken) +(\w+): (.*)$", result.stdout, re.M)
    return {subject: (mark, text) for mark, subject, text in rows}


def test_hook_and_stack_mode_are_named(warm):
    result = doctor("--", run_numsan.PYTHON, "train.py", NUMSAN_OPTIONS="tier=off:log=none")
    said = lines(result)
    assert said["operations"] == (
        "ok", "seen by a dispatch key's fallback; a NaN made on purpose was found at its line"), result
    mark, text = said["lines"]
    assert mark == "ok" and ("raw walk" in text) == ("C-API walk" not in text), result
    assert result.returncode in (0, 1), result  # 1: a cuda driver is there


def test_no_compiler_and_no_adapter(build, tmp_path):
    result = doctor("--", run_numsan.PYTHON, PATH=str(tmp_path), CXX=str(tmp_path / "none"),
                    NUMSAN_CACHE=str(tmp_path / "cache"))
    mark, text = lines(result)["operations"]
    assert mark == "broken" and "needs a C++ compiler" in text, result
    assert result.returncode == 2
    assert result.stdout.endswith("numsan: cannot work here\n")


def answering(tmp_path, probe):
    """A program that answers doctor's questions as a Python with torch does, what it runs under numsan with `probe`."""
    python = tmp_path / "python3"
    python.write_text(f"""#!/bin/sh
case "$*" in
*probe*) {probe} ;;
*) printf '3.13.1\\n2.11.0\\n/nowhere/torch\\n' ;;
esac
""")
    python.chmod(0o755)
    return str(python)


def test_taken_dispatch_key_means_record_functions(warm, tmp_path):
    """What doctor makes of it. The real tool, with the key taken by sitecustomize, is in tests/interpose/torch."""
    probe_output = ("echo 'numsan: operators are seen through record functions, which is slower: "
                    "the dispatch key is another library'; echo '--> <string>:6 in probe'; "
                    "echo 'stacks api|free-threaded python'")
    result = doctor("--", answering(tmp_path, probe_output))
    mark, text = lines(result)["lines"]
    assert mark == "ok" and text.endswith("slower (C-API walk): free-threaded python"), result
    mark, text = lines(result)["operations"]
    assert (mark, text) == (
        "limited", "seen through record functions, which is slower: another library has taken the dispatch key; "
                   "a NaN made on purpose was found at its line"), result
    assert result.returncode == 1


def test_a_reason_to_be_off_is_quoted(build, tmp_path):
    result = doctor("--", answering(tmp_path, "echo 'numsan: off: torch refused the autograd callbacks'"))
    assert lines(result)["operations"] == ("broken", "torch refused the autograd callbacks"), result
    assert result.returncode == 2


def test_program_that_fails_is_quoted(build, tmp_path):
    result = doctor("--", answering(tmp_path, "echo 'Traceback'; echo 'ImportError: no libc10.so'; echo; exit 1"))
    assert lines(result)["operations"] == (
        "broken", "a NaN made on purpose was not found (exit status 1): ImportError: no libc10.so"), result
    assert lines(result)["lines"] == ("limited", "python frames cannot be read: python did not say"), result
    assert result.returncode == 2


def test_python_without_torch(build, tmp_path):
    python = tmp_path / "python-without-torch"
    python.write_text(f'#!/bin/sh\nexec {run_numsan.PYTHON} -I -S "$@"\n')
    python.chmod(0o755)
    result = doctor("--", str(python))
    assert lines(result)["torch"] == (
        "broken", "this python has none, so no operation would be seen; to ask about another: "
                  "numsan doctor -- /path/to/python"), result
    assert "operations" not in lines(result)
    assert result.returncode == 2


def test_nvtx_of_another_tool(build, tmp_path):
    """Its ranges are then the tool's; what a parent under numsan left in the environment is none."""
    python = answering(tmp_path, "echo 'numsan: off: not asked'")
    for mine in ("", "/somewhere/libnumsan.so"):
        assert "nvtx" not in lines(doctor("--", python, NVTX_INJECTION64_PATH=mine))
    result = doctor("--", python, NVTX_INJECTION64_PATH="/opt/nsys/libToolsInjection64.so")
    marks = ("it is shown findings as marks in the domain numsan",
             "it is shown no findings, as numsan was built without nvtx3/nvToolsExt.h")
    assert lines(result)["nvtx"] in [
        ("limited", "NVTX_INJECTION64_PATH names the library of another tool, /opt/nsys/libToolsInjection64.so: the "
                    f"program's ranges are not known, numsan:ignore among them (that of record_function is); {shown}")
        for shown in marks], result
