"""One bug, one folder: victim.py makes it, expect.json says what numsan must say, twin.py must be met with silence."""
import json
import pathlib
import re

import pytest

import run_numsan

HERE = pathlib.Path(__file__).resolve().parent
BUGS = sorted(path.parent.name for path in HERE.glob("*/expect.json"))


def together(*bugs):
    """As parameters: what looks at a victim's run goes to one worker of xdist, or each would make its own."""
    return [pytest.param(bug, marks=pytest.mark.xdist_group(bug)) for bug in bugs]


@pytest.fixture(scope="module")
def victim(warm, tmp_path_factory):
    """Runs each victim once with and once without numsan, however many tests look at it."""
    runs = {}

    def of(bug):
        if bug not in runs:
            program = HERE / bug / "victim.py"
            watched = run_numsan.run_watched_fork(program, cwd=tmp_path_factory.mktemp(bug))
            plain = run_numsan.run_forked(program, cwd=tmp_path_factory.mktemp(bug + "-plain"))
            runs[bug] = program, watched, plain
        return runs[bug]
    return of


def test_there_are_programs():
    assert len(BUGS) >= 14


@pytest.mark.quick
@pytest.mark.parametrize("bug", together(*BUGS))
def test_first_finding_is_the_bug(bug, victim):
    program, watched, _ = victim(bug)
    expect = json.loads((HERE / bug / "expect.json").read_text())
    assert watched.report is not None, watched.describe()
    run_numsan.validate(watched.report)
    assert watched.report["verdict"] == "findings", watched.describe()
    assert watched.findings, watched.describe()
    first = watched.findings[0]
    seen = {"op": first["op"], "phase": first["phase"], "step": first["step"], "kind": first["kind"],
            "mechanism": first["mechanism"], "severity": first["severity"], "escape_into": first["escape"]["into"]}
    wrong = {key: (value, expect[key]) for key, value in seen.items() if value != expect[key]}
    assert not wrong, f"(seen, expected): {wrong}\n{watched.describe()}"
    place = first["location"]
    assert place is not None, watched.describe()
    assert (place["file"], place["line"]) == (str(program), run_numsan.marked_line(program)), watched.describe()
    assert place["code"] == program.read_text().splitlines()[place["line"] - 1].strip()
    if "module" in expect:
        module = first["module"] or ""
        assert f".{module}".endswith(f".{expect['module']}"), f"module {module!r}\n{watched.describe()}"
    if "category" in expect:
        assert first["category"]["id"] == expect["category"], watched.describe()
    assert len(watched.findings) == expect["findings"], watched.describe()
    if "contaminated" in expect:
        since = {f"{one['kind']} {one['name']}": one["since_step"] for one in first["contaminated"]}
        assert since == expect["contaminated"], watched.describe()


@pytest.mark.quick
@pytest.mark.parametrize("bug", together(*BUGS))
def test_text_names_the_line(bug, victim):
    program, watched, _ = victim(bug)
    severity = json.loads((HERE / bug / "expect.json").read_text())["severity"]
    assert re.search(rf"^{severity}\[NS\d{{3}}\]: ", watched.stderr, re.M), watched.describe()
    arrows = re.findall(r"^\s*--> (\S+):(\d+)", watched.stderr, re.M)
    assert arrows, watched.describe()
    file, line = arrows[0]
    assert pathlib.Path(file).name == program.name and int(line) == run_numsan.marked_line(program), watched.describe()


@pytest.mark.quick
@pytest.mark.parametrize("bug", together(*BUGS))
def test_program_is_left_alone(bug, victim):
    _, watched, plain = victim(bug)
    assert watched.returncode == plain.returncode == 0, watched.describe()
    assert watched.stdout == plain.stdout, watched.describe()


@pytest.mark.quick
@pytest.mark.parametrize("bug", BUGS)
def test_twin_is_met_with_silence(bug, warm, tmp_path):
    watched = run_numsan.run_watched_fork(HERE / bug / "twin.py", cwd=tmp_path, clean=True)
    assert watched.returncode == 0, watched.describe()
    assert not re.search(r"\b(nan|inf)\b", watched.stdout), f"the twin is not healthy\n{watched.describe()}"
    assert watched.report is not None, watched.describe()
    run_numsan.validate(watched.report)
    assert watched.report["verdict"] == "clean" and watched.findings == [], watched.describe()
    assert watched.stderr == "", watched.describe()


@pytest.mark.parametrize("bug", together("log_of_negative", "distance_of_twins"))
def test_launcher_says_the_same(bug, victim, tmp_path):
    program, watched, _ = victim(bug)
    launched = run_numsan.run(program, launcher="run", cwd=tmp_path)
    assert launched.returncode == 0, launched.describe()
    key = ("fingerprint", "code", "op", "phase", "step", "location")
    assert [{k: f[k] for k in key} for f in launched.findings] == [{k: f[k] for k in key} for f in watched.findings]


@pytest.mark.parametrize("launcher, options, status", [
    pytest.param("preload", {"fail_on": "error"}, 66, marks=pytest.mark.nightly),
    pytest.param("run", {"fail_on": "error"}, 66, marks=pytest.mark.nightly),
    ("preload", {"fail_on": "error", "exitcode": 3}, 3),
    pytest.param("run", {"fail_on": "error", "exitcode": 3}, 3, marks=pytest.mark.nightly),
    ("run", {"fail_on": "none", "exitcode": 3}, 0),
    pytest.param("preload", {"fail_on": "none", "exitcode": 3}, 0, marks=pytest.mark.nightly)])
def test_exit_status_only_when_asked(launcher, options, status, warm, tmp_path):
    done = run_numsan.run(HERE / "log_of_negative" / "victim.py", launcher=launcher, options=options, cwd=tmp_path)
    assert done.returncode == status, done.describe()


def test_twin_exits_with_zero_under_fail_on(warm, tmp_path):
    done = run_numsan.run(HERE / "log_of_negative" / "twin.py", options={"fail_on": "warning"}, cwd=tmp_path)
    assert done.returncode == 0, done.describe()


@pytest.mark.xdist_group("log_of_negative")
def test_halt_stops_at_the_first_error(victim, tmp_path):
    program, watched, plain = victim("log_of_negative")
    halted = run_numsan.run(program, options={"halt": 1}, cwd=tmp_path)
    assert halted.returncode != 0, halted.describe()
    assert len(halted.stdout.splitlines()) < len(plain.stdout.splitlines()), halted.describe()
    assert halted.findings and halted.findings[0]["location"] == watched.findings[0]["location"], halted.describe()


@pytest.mark.xdist_group("log_of_negative")
@pytest.mark.parametrize("rule", ["op:aten::log file:*victim.py", "code:{code}", *(
    pytest.param(rule, marks=pytest.mark.nightly) for rule in ("op:aten::log", "file:victim.py:{line}"))])
def test_allowed_finding_is_not_reported(rule, victim, tmp_path):
    program, watched, _ = victim("log_of_negative")
    assert watched.findings, watched.describe()
    text = rule.format(line=run_numsan.marked_line(program), code=watched.findings[0]["code"])
    (tmp_path / "allow.txt").write_text(f"# a comment\n{text}\n")
    allowed = run_numsan.run(program, options={"allow": tmp_path / "allow.txt"}, cwd=tmp_path)
    assert allowed.returncode == 0 and allowed.findings == [], allowed.describe()
    assert allowed.report["suppressed"], allowed.describe()


def test_tier_off_reports_nothing(warm, tmp_path):
    done = run_numsan.run(HERE / "log_of_negative" / "victim.py", options={"tier": "off"}, cwd=tmp_path)
    assert done.returncode == 0 and done.findings == [] and "error[" not in done.stderr, done.describe()
