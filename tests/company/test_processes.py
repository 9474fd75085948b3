"""One model or data set in several processes."""
import pytest

import beside
import run_numsan


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.nightly)])
def test_hogwild(method, warm, tmp_path):
    """A model in shared memory, trained by processes in turn. The bug is found by the process that has it, and the
    others have nothing to say."""
    program = beside.PROGRAMS / "hogwild.py"
    plain = run_numsan.run_forked(program, args=[method], cwd=tmp_path, timeout=beside.TIMEOUT)
    watched = run_numsan.run(program, args=[method], cwd=tmp_path, options={"report": tmp_path / "report-%p.json"},
                             timeout=beside.TIMEOUT)
    reports = [run_numsan.read_report(path) for path in tmp_path.glob("report-*.json")]
    watched.report = {"findings": [finding for report in reports for finding in report["findings"]]}
    assert "ended [0, 0]\n" in plain.stdout, plain.describe()
    beside.check(plain, watched)


def test_persistent_workers(warm, tmp_path):
    beside.check_forked("persistent_workers.py", tmp_path, place=beside.PROGRAMS / "persistent_workers.py")
