"""Growth that will leave its type's range is told while the training runs; growth that levels off is not."""
import json
import re
import subprocess

import pytest

import early_warning
import run_numsan

GROWING = [pytest.param(path, id=path.stem) for path, args in early_warning.growing() if path.parent.name == "growth"]


@pytest.mark.parametrize("program", GROWING)
def test_growth_is_told_ten_steps_ahead_or_more(program, warm):
    lead, _, warnings = early_warning.lead_of(program, ())
    assert lead is not None and lead >= 10, warnings


@pytest.mark.parametrize("program", GROWING)
def test_healthy_twin_is_not_warned_of(program, warm):
    assert early_warning.what_is_wrong(program, ("healthy",)) == ""


def test_warning_is_told_once_before_the_finding_and_stands_in_the_report(warm, tmp_path):
    program = next(one.values[0] for one in GROWING if one.id == "regression_rate")
    done = run_numsan.run(program, options={"diagnose": 1}, cwd=tmp_path)
    run_numsan.validate(done.report)
    first = done.report["diagnosis"]["early_warnings"][0]
    assert (first["of"], first["dtype"], first["location"]["file"]) == ("output", "float32", str(program))
    assert first["steps_least"] <= first["steps"] <= first["steps_most"]
    told = re.findall(r"early warning: at this rate float32 overflows in about (\d+) steps", done.stderr)
    assert told == [str(first["steps"])], done.describe()
    assert done.stderr.index("early warning: ") < done.stderr.index("error[NS"), done.describe()
    for command in ("report", "diagnose"):
        shown = subprocess.run([run_numsan.COMMAND, command, done.report_path], capture_output=True, text=True)
        assert "early warning: at this rate float32 overflows in about " in shown.stdout, shown
    done.report["diagnosis"]["faults"] = []
    (tmp_path / "warned.json").write_text(json.dumps(done.report))
    shown = subprocess.run([run_numsan.COMMAND, "diagnose", tmp_path / "warned.json"], capture_output=True, text=True)
    assert shown.returncode == 1, shown
