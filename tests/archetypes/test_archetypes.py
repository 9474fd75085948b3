"""How values go bad in practice, one small program each, and healthy ones that only look it; see cases.py."""
import json
import subprocess

import pytest

import run_numsan
from cases import all_cases

CASES = all_cases()
RUN_CASES = run_numsan.REPO / "tests" / "archetypes" / "run_cases.py"
pytestmark = [pytest.mark.quick, pytest.mark.xdist_group("archetypes")]  # one worker runs them
SEVERITIES = ["none", "info", "warning", "error"]


@pytest.fixture(scope="module")
def runs(warm, tmp_path_factory):
    """The folder in which all cases ran, in children of one watched process."""
    folder = tmp_path_factory.mktemp("archetypes")
    names = [f"{case.file}:{case.name}" + (":whole" if "reaches" in case.expect else "") for case in CASES]
    command, environment = run_numsan.attached([run_numsan.PYTHON, RUN_CASES, folder, *names],
                                               report=folder / "report-%p.json", options={"log": folder / "log-%p.txt"})
    done = subprocess.run(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def findings_of(folder, name):
    path = folder / f"{name}.json"
    report = json.loads(path.read_text()) if path.exists() else {"findings": []}
    return report["findings"]


def differences(case, findings):
    """{what: (seen, expected)} of a bug program."""
    if not findings:
        return {"findings": (0, case.expect)}
    first = findings[0]
    place = first["location"] or {}
    seen = {"op": first["op"], "phase": first["phase"], "kind": first["kind"], "mechanism": first["mechanism"],
            "category": (first["category"] or {}).get("id"), "severity": first["severity"], "step": str(first["step"]),
            "into": first["escape"]["into"], "findings": str(len(findings))}
    wanted = {"severity": ["error"], "findings": ["1"], **case.expect}
    wrong = {key: (seen[key], wanted[key]) for key in seen if key in wanted and seen[key] not in wanted[key]}
    if (place.get("file"), place.get("line")) != (str(case.file), case.line):
        wrong["line"] = (f"{place.get('file')}:{place.get('line')}", case.line)
    for end in wanted.get("reaches", []):
        names = [one["name"] for one in first["contaminated"]]
        if not any(name.endswith(end) or name.startswith(f"{end} of ") for name in names):
            wrong["reaches"] = (names, end)
    return wrong


def marks(case):
    return [pytest.mark.xfail(reason=case.wrong, strict=True)] if case.wrong else []


def parameters(cases):
    return [pytest.param(case, id=case.name, marks=marks(case)) for case in cases]


def test_names_are_told_apart():
    assert len({case.name for case in CASES}) == len(CASES) > 60


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_program_is_what_it_says(case, runs):
    """A bug that does not strike, or a healthy program that ends bad, would be a test of nothing."""
    result = json.loads((runs / "results.json").read_text())[case.name]
    assert result == {"status": 0, "finite": case.finite}, (runs / f"{case.name}.out").read_text()[-4000:]


@pytest.mark.parametrize("case", parameters(case for case in CASES if case.allowed is None))
def test_bug_is_named(case, runs):
    findings = findings_of(runs, case.name)
    wrong = differences(case, findings)
    assert not wrong, f"(seen, expected): {wrong}\n{json.dumps(findings, indent=1)[:6000]}"


@pytest.mark.parametrize("case", parameters(case for case in CASES if case.allowed is not None))
def test_nothing_healthy_is_blamed(case, runs):
    findings = findings_of(runs, case.name)
    worst = max((SEVERITIES.index(one["severity"]) for one in findings), default=0)
    assert worst <= SEVERITIES.index(case.allowed), json.dumps(findings, indent=1)[:6000]
    if case.allowed == "none":
        assert not (runs / f"{case.name}.txt").exists(), (runs / f"{case.name}.txt").read_text()
