"""scripts/gpu_acceptance and its modules, without a GPU: limits, results, sections, what is carried."""
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("NUMSAN_BUILD", REPO / "build")).resolve()
SCRIPT = REPO / "scripts/gpu_acceptance"


@pytest.fixture(scope="module")
def tool():
    """The script as a module; its parts are importable after it."""
    loader = importlib.machinery.SourceFileLoader("gpu_acceptance", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_acceptance", loader))
    before = sys.path[:]
    loader.exec_module(module)
    yield module
    sys.path[:] = before


@pytest.fixture
def setting(tool, tmp_path):
    return tool.parts_of.Setting(tmp_path, tmp_path / "build", tmp_path / "work", sys.executable, "cuda", None,
                                 ["full"], "", 2, "c0ffee")


def spread(value):
    return {"median": value, "low": value * 0.9, "high": value * 1.1, "turns": 5}


SUMMARY = {
    "date": "2026-01-02", "started": "2026-01-02T03:04:05+00:00", "commit": "c0ffee", "device": "cuda",
    "command": "scripts/gpu_acceptance --carry FOLDER",
    "machine": {"gpu": "NVIDIA H200", "driver": "580.1", "cpu": "a processor", "cores": 16, "torch": "2.11.0"},
    "parts": {
        "scan": {"result": "passed", "seconds": 3, "line": "ok", "data": {
            "rates": [{"type": "float32", "bytes": 64 << 20, "batch": 1, "subjects": {
                "copy": {"microseconds": spread(30), "gb_per_s": spread(4000), "of_copy": spread(1)},
                "scan": {"microseconds": spread(17), "gb_per_s": spread(3900), "of_copy": spread(0.97)}}}],
            "host": [{"what": "immediate", "nanoseconds": spread(1100)}]}},
        "steps": {"result": "timed out", "seconds": 9, "line": "a | b", "data": {
            "works": [{"work": "gpt2", "title": "GPT-2", "configurations": {
                "bare": {"seconds": spread(0.02), "of_bare": spread(1.0)},
                "full": {"seconds": spread(0.023), "of_bare": spread(1.15),
                         "coverage": {"scanned": 7, "bytes": 2_500_000_000}}}}],
            "failed": {"llama-1b": "out of\nmemory"}}},
        "attach": {"result": "failed", "seconds": 1, "line": "x", "data": {
            "same": {"question": "the same?", "answer": "no", "seen": "1 | 2"},
            "graph": {"question": "graphs?", "answer": None, "seen": "not asked"}}}}}


def test_a_section_has_what_was_measured_and_nothing_else(tool):
    text = tool.section.text(SUMMARY)
    assert text.startswith("2026-01-02, NVIDIA H200, driver 580.1, 16 cores of a processor, torch 2.11.0")
    assert "    scripts/gpu_acceptance --carry FOLDER\n" in text
    assert "| steps | timed out | 9 | a \\| b |" in text
    assert ("| float32 | 64 MB | 1 | 4000 (3600..4400) | 17.00 (15.30..18.70) | 3900 (3510..4290) | 0.97 (0.87..1.07) |"
            in text)
    assert "|  | full | 23.00 (20.70..25.30) | +15.0 % (+3.5..+26.5) | 7 ops, 2.5 GB |  |" in text
    assert "llama-1b was not measured: out of memory" in text
    assert "| the same? | no | 1 \\| 2 |" in text and "| graphs? | not asked | not asked |" in text
    assert "Verdicts" not in text and "Scores" not in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) >= 3


def targets_of(tool, parts):
    """{target: (limit, measured, holds)} of a run."""
    rows = tool.section.gpu_targets.held({name: one["data"] for name, one in parts.items()})
    return {target: tuple(rest) for target, *rest in rows}


def test_what_was_measured_is_held_against_the_targets(tool):
    found = targets_of(tool, SUMMARY["parts"])
    assert found["scan, 64 MB and more, of a copy's rate"] == ("at least 0.9", "0.97 (64 MB)", "yes")
    assert found["full, ungoverned, more than bare, %"] == ("at most 20", "15 (gpt2 full)", "yes")
    assert found["scan, 25 MB, of a copy's rate"] == ("at least 0.6", "", "not measured")
    text = tool.section.text(SUMMARY)
    assert "| full, ungoverned, more than bare, % | at most 20 | 15 (gpt2 full) | yes |" in text
    assert text.count("| not measured |") == len(found) - 2


def measured_parts():
    """Every target has a figure, all of them too far."""
    def scan(size, of_copy, microseconds, **more):
        return {"type": "float32", "bytes": size, "batch": 1, "launches_a_batch": 3, **more, "subjects": {
            "scan": {"microseconds": spread(microseconds), "gb_per_s": spread(1), "of_copy": spread(of_copy)},
            "copy": {"gb_per_s": spread(1)}}}
    slow = {name: {"of_bare": spread(1.5), "seconds": spread(1)} for name in
            ("default", "sentinel", "boundary", "governed", "full")}
    works = [{"work": name, "title": name, "configurations": slow}
             for name in ("gpt2-350m", "gpt2-124m-b1", "vit-b")]
    works.append({"work": "graph-100", "title": "graph", "configurations": {
        "full": {"of_bare": spread(9), "seconds": spread(1), "microseconds_a_node": spread(2)}}})
    return {
        "scan": {"data": {"host": [], "rates": [scan(1 << 20, 0.9, 4), scan(25 << 20, 0.5, 9), scan(64 << 20, 0.8, 9),
                                                scan(256 << 20, 0.95, 9), scan(64 << 20, 0.1, 9, values="nan"),
                                                scan(64 << 20, 0.2, 9, layout="rows")]}},
        "steps": {"data": {"works": works, "failed": {}}},
        "attach": {"data": {"memory": {"question": "", "answer": "no", "seen": "", "figure": 70.0}}},
        "tests": {"data": {"tests": 1, "failed": 0, "host": {"immediate": 1300.0, "deferred": 300.0, "fake": 9e9}}}}


def test_every_target_can_be_measured_and_missed(tool):
    found = targets_of(tool, measured_parts())
    assert {holds for _, _, holds in found.values()} == {"no"}, found
    assert found["scan, 64 MB and more, of a copy's rate"][1] == "0.8 (64 MB)", "the worst one of finite, dense tensors"
    assert found["replay of a graph, us a scan node"][1] == "2 (graph-100 full)"
    assert found["launch-bound step, every tier, more than bare, %"][1].startswith("50 (gpt2-124m-b1 ")
    assert found["memory of the device, MB"][1] == "70 (a small training)"


def test_columns_of_tables_agree(tool):
    heads = None
    for line in tool.section.text(SUMMARY).splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else None
        assert heads is None or cells is None or cells == heads
        heads = cells


def test_the_marked_section_alone_is_replaced(tool):
    text = "a\n<!-- gpu acceptance -->\nold \\1\n<!-- end gpu acceptance -->\nb\n"
    new = tool.marked.replaced(text, "gpu acceptance", "end gpu acceptance", "new \\2\nlines")
    assert new == "a\n<!-- gpu acceptance -->\nnew \\2\nlines\n<!-- end gpu acceptance -->\nb\n"
    for bad in ("nothing", text + text, "<!-- gpu acceptance -->\n"):
        with pytest.raises(tool.marked.NoPlace):
            tool.marked.replaced(bad, "gpu acceptance", "end gpu acceptance", "new")
    results = (REPO / "tests/bench/RESULTS.md").read_text()
    assert tool.marked.replaced(results, "gpu acceptance", "end gpu acceptance", "X").count("\nX\n") == 1


def test_results_are_pasted_from_folders_of_one_machine(tool, tmp_path, monkeypatch, capsys):
    results = tmp_path / "RESULTS.md"
    results.write_text("# Bench\n<!-- gpu acceptance -->\nnone\n<!-- end gpu acceptance -->\nend\n")
    monkeypatch.setattr(tool, "RESULTS", results)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    second = {**SUMMARY, "command": "scripts/gpu_acceptance scan",
              "parts": {"scan": {**SUMMARY["parts"]["scan"], "line": "once more"}}}
    for name, summary in (("a", SUMMARY), ("b", second), ("test", {**SUMMARY, "device": "test"}),
                          ("other", {**SUMMARY, "commit": "another"})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(json.dumps(summary))
    assert tool.main(["results", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    text = results.read_text()
    assert text.startswith("# Bench\n") and text.endswith("<!-- end gpu acceptance -->\nend\n")
    assert "once more" in text and "timed out" in text and "--carry FOLDER; scripts/gpu_acceptance scan" in text
    for folders, reason in ((["test"], "test device"), (["a", "other"], "another machine or commit"),
                            (["no"], "No such")):
        assert tool.main(["results", *(str(tmp_path / folder) for folder in folders)]) == 1
        assert reason in capsys.readouterr().err
    assert results.read_text() == text


def part_of(tool, commands, read=lambda setting, texts: (texts[-1].strip(), {"n": 1}, True), seconds=30):
    return tool.parts_of.Part("x", "about", seconds, lambda setting: commands, read)


def test_a_part_ends_as_its_commands_do(tool, setting):
    command, log = tool.parts_of.Command, io.StringIO()
    run = tool.parts_of.run
    passed = run(part_of(tool, [command(["echo", "hello"])]), setting, 10, log)
    assert (passed["result"], passed["line"], passed["data"]) == ("passed", "hello", {"n": 1})
    failing = [command(["sh", "-c", "echo bad; exit 3"]), command(["echo", "later"])]
    failed = run(part_of(tool, failing), setting, 10, log)
    assert (failed["result"], failed["line"]) == ("failed", "bad")
    assert run(part_of(tool, [command(["false"], may_fail=True)]), setting, 10, log)["result"] == "passed"
    assert run(part_of(tool, [command(["no-such-program"])]), setting, 10, log)["result"] == "failed"

    def unreadable(setting, texts):
        raise ValueError("no JSON")
    wrong = run(part_of(tool, [command(["echo", "fine"])], unreadable), setting, 10, log)
    assert wrong["result"] == "failed" and "fine (ValueError: no JSON)" in wrong["line"]
    assert "$ echo hello" in log.getvalue() and "hello\n" in log.getvalue()


def test_a_part_ends_with_its_children_when_its_time_is_up(tool, setting, tmp_path):
    marker = tmp_path / "still-there"
    command = tool.parts_of.Command(["sh", "-c", f"(sleep 3; touch {marker}) & sleep 60"])
    started = time.monotonic()
    result = tool.parts_of.run(part_of(tool, [command], seconds=1), setting, 100, io.StringIO())
    assert result["result"] == "timed out" and time.monotonic() - started < 30
    time.sleep(4)
    assert not marker.exists()


def test_a_failed_part_stops_no_other(tool, setting, capsys):
    command = tool.parts_of.Command
    parts = [part_of(tool, [command(["false"])], lambda s, t: ("no", {}, True)),
             part_of(tool, [command(["echo", "yes"])])]
    parts[0].name = "first"
    options = tool.parsed([])
    outcomes = tool.run_parts(parts, setting, options, io.StringIO())
    assert [one["result"] for one in outcomes.values()] == ["failed", "passed"]
    assert len(capsys.readouterr().out.splitlines()) == 2
    options.limit = 0
    assert {one["result"] for one in tool.run_parts(parts, setting, options, io.StringIO()).values()} == {"not run"}


def test_all_parts_have_eight_minutes_together(tool):
    assert sum(one.seconds for one in tool.PARTS) <= 480 == tool.parsed([]).limit
    names = [one.name for one in tool.PARTS]
    assert names[:2] == ["probe", "build"] and names.index("scan") < names.index("steps") < names.index("score")


def test_what_a_part_leaves_of_its_time_is_the_next_ones(tool, setting, monkeypatch):
    clock, given = [0.0], {}

    def run(part, setting, left, log):
        given[part.name] = (part.seconds, left)
        clock[0] += took[part.name]
        return {"result": "passed", "seconds": took[part.name], "line": "", "data": {}}
    monkeypatch.setattr(tool.parts_of, "run", run)
    monkeypatch.setattr(tool.time, "monotonic", lambda: clock[0])
    parts = [part_of(tool, [], seconds=seconds) for seconds in (100, 300, 80)]
    for one, name in zip(parts, "abc"):
        one.name = name
    took = {"a": 30, "b": 350, "c": 1}
    tool.run_parts(parts, setting, tool.parsed([]), io.StringIO())
    assert given == {"a": (100, 100), "b": (370, 370), "c": (100, 100)}
    tool.run_parts(parts[1:2], setting, tool.parsed([]), io.StringIO())
    assert given["b"] == (480, 480), "alone it has all the time"
    took["a"] = 480
    outcomes = tool.run_parts(parts, setting, tool.parsed([]), io.StringIO())
    assert [one["result"] for one in outcomes.values()] == ["passed", "not run", "not run"]


CTEST = """1: [==========] 37 tests from 2 test suites ran. (9 ms total)
1: [  PASSED  ] 37 tests.
1/1 Test #1: gpu_tests.on_a_gpu ...   Passed    0.0 sec
100% tests passed, 0 tests failed out of 1
"""


def test_what_tests_printed_is_read(tool, setting):
    parts = sys.modules["parts"]
    setting.work.mkdir()
    setting.result("host").write_text(json.dumps({"benchmarks": [
        {"run_name": "immediate", "aggregate_name": "median", "real_time": 390.0},
        {"run_name": "immediate", "aggregate_name": "mean", "real_time": 1.0}, {"run_name": "deferred"}]}))
    line, data, passed = parts.read_tests(setting, [CTEST, ""])
    assert passed and data == {"failed": 0, "tests": 37, "host": {"immediate": 390.0}} and line.startswith("37 tests")
    assert not parts.read_tests(setting, [CTEST.replace("  PASSED  ", "  SKIPPED "), ""])[2]
    assert not parts.read_tests(setting, [CTEST.replace("100% tests passed, 0", "0% tests passed, 1"), ""])[2]
    with pytest.raises(ValueError):
        parts.read_tests(setting, ["No tests were found", ""])


def test_a_probe_that_is_there_runs_first_and_else_is_built(tool, setting):
    parts = sys.modules["parts"]
    without, with_one = tool.parsed([]), tool.parsed(["--probe", "elsewhere/bin/numsan_gpu_probe"])
    without.probe = None
    assert [one.name for one in tool.chosen(with_one)][:3] == ["probe", "build", "tests"]
    assert [one.name for one in tool.chosen(without)][:3] == ["build", "probe", "tests"]
    [command] = parts.probe_commands(setting)
    assert command.argv[:3] == [setting.build / "bin/numsan_gpu_probe", "--out", setting.work / "probe.json"]
    setting.probe, setting.out = pathlib.Path("/carried/bin/numsan_gpu_probe"), pathlib.Path("/results")
    [command] = parts.probe_commands(setting)
    assert command.argv[:3] == [setting.probe, "--out", pathlib.Path("/results/probe.json")] and not command.env
    setting.device = "test"
    [command] = parts.probe_commands(setting)
    assert command.env == {"LD_LIBRARY_PATH": "/carried/fakes"} and "--max-bytes" in command.argv
    built = [word for one in parts.build_commands(setting) for word in one.argv]
    assert "numsan_gpu_probe" in built


def test_what_the_probe_left_is_read(tool, setting):
    parts = sys.modules["parts"]
    setting.work.mkdir()
    document = {"device": "a GPU", "phases": {"facts": {"result": "passed"}, "twins": {"result": "passed"}}}
    (setting.work / "probe.json").write_text(json.dumps(document))
    assert parts.read_probe(setting, [""]) == ("a GPU: 2 phases, all passed", document, True)
    document["phases"]["twins"] = {"result": "failed", "line": "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS"}
    document["phases"]["worst"] = {"result": "under way"}
    (setting.work / "probe.json").write_text(json.dumps(document))
    line, _, passed = parts.read_probe(setting, [""])
    assert not passed and "twins failed: cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS; worst under way" in line


def test_programs_that_were_just_built_are_preferred_to_carried_ones(tool, setting, tmp_path, monkeypatch):
    parts = sys.modules["parts"]
    built, carried = setting.build / "programs_cuda", tmp_path / "carried"
    monkeypatch.setattr(parts, "PROGRAMS", carried)

    def chosen():
        [command] = parts.raw_commands(setting)
        return command.argv[command.argv.index("--built") + 1]
    for folder in (built, carried):
        folder.mkdir(parents=True)
    assert chosen() == built, "folders with nothing in them"
    (carried / "mlp").touch()
    assert chosen() == carried
    (built / "mlp").touch()
    assert chosen() == built


def test_what_programs_without_torch_left_is_read(tool, setting):
    parts = sys.modules["parts"]
    setting.work.mkdir()
    with pytest.raises(ValueError, match="no program was started"):
        parts.read_raw(setting, ["no CUDA device here"])
    setting.result("raw").write_text(json.dumps({"mlp-bug": {"differs": ""}}))
    assert parts.read_raw(setting, [""])[::2] == ("1 programs, all as they should be", True)
    late = {"mlp-bug": {"differs": ""}, "roots-bug": {"differs": "has not ended"}}
    setting.result("raw").write_text(json.dumps(late))
    assert parts.read_raw(setting, [""])[::2] == ("2 programs, roots-bug: has not ended", False)


def test_the_probe_runs_on_the_test_device(tmp_path):
    """By the command, prebuilt, with its JSON in the folder of results."""
    probe = BUILD / "bin/numsan_gpu_probe"
    if not probe.exists():
        if shutil.which("nvcc") is None:
            pytest.skip("no probe in this build, as there is no nvcc")
        pytest.fail("numsan_gpu_probe is missing: build first (scripts/build)", pytrace=False)
    done = subprocess.run([sys.executable, SCRIPT, "probe", "--device", "test", "--probe", probe, "--out",
                           tmp_path / "out"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "numsan fake device 0: 8 phases, all passed" in done.stdout
    document = json.loads((tmp_path / "out/probe.json").read_text())
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["parts"]["probe"]["data"] == document and document["finished"]


def test_answers_and_verdicts_are_read(tool, setting):
    parts = sys.modules["parts"]
    setting.work.mkdir()
    answers = {"a": {"answer": "yes", "wanted": True}, "b": {"answer": "no", "wanted": False},
               "c": {"answer": None, "wanted": True}}
    setting.result("attach").write_text(json.dumps(answers))
    assert parts.read_attach(setting, [""])[0::2] == ("2 questions, 0 with another answer than wanted", True)
    setting.result("attach").write_text(json.dumps({**answers, "d": {"answer": "no", "wanted": True}}))
    assert parts.read_attach(setting, [""])[0::2] == ("3 questions, 1 with another answer than wanted: d", False)
    for different, scanned, passed in (({}, 5, True), ({"p01": {}}, 5, False), ({}, 0, False)):
        setting.result("suite").write_text(json.dumps({"different": different, "coverage": {"scanned": scanned}}))
        assert parts.read_suite(setting, ["x\nthe line\n"])[0::2] == ("the line", passed)


def test_the_output_is_few_small_files(tool, tmp_path):
    reports, out, log = tmp_path / "reports", tmp_path / "out", tmp_path / "log"
    (reports / "part").mkdir(parents=True)
    for name, size in (("small", 100), ("large", 5000)):
        (reports / "part" / f"{name}.json").write_bytes(os.urandom(size))
    log.write_bytes(b"a" * 2000 + b"z" * 2000)
    tool.output.keep_ends(log, 100)
    assert log.read_bytes().startswith(b"a" * 50 + b"\n... 3900 bytes") and log.read_bytes().endswith(b"z" * 50)
    assert tool.output.pack_reports(reports, tmp_path / "r.tar.gz", 1000) == ["part/large.json"]
    tool.output.write(out, SUMMARY, log, reports)
    assert sorted(path.name for path in out.iterdir()) == ["log.txt", "reports.tar.gz", "results.md", "summary.json"]
    with tarfile.open(out / "reports.tar.gz") as tar:
        assert sorted(tar.getnames()) == ["part/large.json", "part/small.json"]
    assert json.loads((out / "summary.json").read_text())["reports_left_out"] == []


def test_the_gpu_is_what_nvidia_smi_says(tool):
    facts = tool.machine.gpu_of(2 * "NVIDIA H100 80GB HBM3, 580.65.06, 81559 MiB\n")
    assert facts == {"gpu": "NVIDIA H100 80GB HBM3", "driver": "580.65.06", "memory": "81559 MiB", "gpus": 2}
    for text in ("", "No devices were found\n"):
        with pytest.raises(tool.machine.NoGpu):
            tool.machine.gpu_of(text)


def test_where_there_is_no_gpu_it_says_so_in_one_line(tmp_path):
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho NVIDIA-SMI has failed\nexit 9\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, SCRIPT, "--out", tmp_path / "out"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (77, "[gpu_acceptance] no GPU here: NVIDIA-SMI has failed\n")
    assert not (tmp_path / "out").exists()


def test_a_dry_run_names_every_command(tool, capsys):
    assert tool.main(["--dry-run", "--carry", "/carried", "--tiers", "full", "--options", "defer=1"]) == 0
    text = capsys.readouterr().out
    assert "-DNUMSAN_CARRIED=/carried" in text and "--tiers full" in text and "--options defer=1" in text
    assert [name for name in ("probe", "build", "tests", "attach", "suite", "scan", "steps", "record", "score")
            if f"{name}: " not in text] == []
    for program in set(re.findall(r"tests/\S+\.py|tests/suite/run", text)):
        assert (REPO / program).is_file(), program
    for wrong in (["nonsense"], ["pack"], ["results"], ["--device", "cpu"]):
        with pytest.raises(SystemExit) as end:
            tool.main(wrong)
        assert end.value.code == 2


PACKAGES = '''
    "g++: compiles"
    "python3-dev: Python.h"
    "libfoo-dev: foo"
    "ninja-build: runs"
'''


def test_what_is_carried(tool, tmp_path, monkeypatch, capsys):
    carried = tool.carried
    assert carried.packages(PACKAGES) == ["libfoo-dev"]
    assert carried.packages('    "libjs-chart.js: plots"\n') == ["libjs-chart.js"]
    scripts = [f"/usr/share/javascript/chart.js/{name}" for name in ("chart.js", "chart.min.js")]
    assert carried.wanted(scripts) == scripts[1:]
    shipped = ["/usr/include/foo.h", "/usr/lib/libfoo.a", "/usr/share/doc/libfoo/include/x.h",
               "/usr/lib/pkgconfig/foo.pc"]
    assert carried.wanted(shipped) == ["/usr/include/foo.h"], "nothing finds a library that no CMake file names"
    described = [*shipped, "/usr/lib/cmake/Foo/FooConfig.cmake"]
    assert carried.wanted(described) == ["/usr/include/foo.h", described[-1], "/usr/lib/libfoo.a"]
    assert carried.wanted(["/usr/include/zlib.h", "/usr/lib/libz.a", "/usr/lib/libz.so"]) == [
        "/usr/include/zlib.h", "/usr/lib/libz.a"], "it is found by its name"
    real, link = tmp_path / "libfoo.so.1", tmp_path / "libfoo.so"
    real.write_text("elf")
    link.symlink_to("libfoo.so.1")
    assert carried.with_targets(str(link)) == [str(link), str(real)]
    header = tmp_path / "include" / "foo.h"
    header.parent.mkdir()
    header.write_text("// foo\n")
    monkeypatch.setattr(carried, "shipped", lambda package: ("1.0", [str(header)]))
    monkeypatch.setattr(carried.shutil, "which", lambda name: "/usr/bin/dpkg")
    folder = tmp_path / "carried"
    facts = carried.pack(folder, PACKAGES, "c0ffee")
    assert facts["packages"] == {"libfoo-dev": "1.0"} and carried.facts_of(folder) == facts
    assert (folder / str(header).lstrip("/")).read_text() == "// foo\n"
    carried.pack(folder, PACKAGES, "c0ffee")  # anew
    with pytest.raises(carried.CannotPack, match="not a carried folder"):
        carried.pack(header.parent, PACKAGES, "c0ffee")
    assert header.exists()
    with pytest.raises(carried.CannotPack):
        carried.facts_of(tmp_path)
    monkeypatch.setattr(carried.shutil, "which", lambda name: None)
    assert tool.main(["pack", str(folder)]) == 1 and "no dpkg" in capsys.readouterr().err
