"""float8_e8m0fnu, the scales of block formats: no sign, no zero, and a NaN that casts make of too large a number."""
import pytest

import run_numsan

PROGRAM = """
import sys, torch
scale = {
    "too large": lambda: torch.tensor([1.0, 3.4e38]).to(torch.float8_e8m0fnu),
    "bytes": lambda: torch.tensor([127, 255], dtype=torch.uint8).view(torch.float8_e8m0fnu),
    "numbers": lambda: torch.arange(255, dtype=torch.uint8).view(torch.float8_e8m0fnu),
}[sys.argv[1]]()
weight = torch.nn.Parameter(torch.full((len(scale),), 1e-3))
optimizer = torch.optim.SGD([weight], lr=1e-40)
(weight * scale.float()).sum().backward()
optimizer.step()
"""


@pytest.mark.parametrize("made, expected", [("too large", ("OVF", "aten::_to_copy", "outputs")),
                                            ("bytes", ("DATA", "external", "inputs")), ("numbers", None)])
def test_nan_of_a_scale_is_seen_where_it_is_made(warm, tmp_path, made, expected):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    result = run_numsan.run_watched_fork(program, args=[made], cwd=tmp_path, clean=expected is None)
    assert result.returncode == 0 and result.report is not None, result.describe()
    run_numsan.validate(result.report)
    if expected is None:
        assert result.findings == [], result.describe()
        return
    mechanism, op, side = expected
    first = result.findings[0]
    assert (first["mechanism"], first["op"], first["kind"]) == (mechanism, op, "nan"), result.describe()
    assert (first[side][0]["dtype"], first[side][0]["nan"]) == ("float8_e8m0fnu", 1), result.describe()
