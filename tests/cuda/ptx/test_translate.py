"""translate.py stops at PTX that it does not know, and names the line: nothing is left out without a word."""
import pathlib
import subprocess
import sys

import pytest

TRANSLATE = pathlib.Path(__file__).with_name("translate.py")
KERNEL = """\
.visible .entry _Z5scalePffs(
\t.param .u64 _Z5scalePffs_param_0,
\t.param .f32 _Z5scalePffs_param_1,
\t.param .align 2 .b8 _Z5scalePffs_param_2[2]
)
{
\t.reg .f32 \t%f<3>;
\tld.param.f32 \t%f1, [_Z5scalePffs_param_1];
\tLINE
\tret;
}
"""


def translated(line, tmp_path, kernel=KERNEL):
    (tmp_path / "a.ptx").write_text(kernel.replace("LINE", line))
    done = subprocess.run([sys.executable, TRANSLATE, tmp_path / "a.ptx", tmp_path / "a.cpp", "--namespace", "a"],
                          capture_output=True, text=True)
    return done.returncode, done.stderr.strip()


@pytest.mark.parametrize("line", [
    "add.sat.f32 \t%f2, %f1, %f1;", "add.ftz.f32 \t%f2, %f1, %f1;", "add.rz.f32 \t%f2, %f1, %f1;",
    "ex2.approx.f32 \t%f2, %f1;", "div.approx.f32 \t%f2, %f1, %f1;", "div.rn.f16 \t%rs1, %rs2, %rs3;",
    "cvt.rn.f32.s32 \t%f2, %r1;", "cvt.rzi.s32.f32 \t%r1, %f1;", "cvt.f16.f32 \t%rs1, %f1;",
    "cvt.rn.sat.f16.f32 \t%rs1, %f1;", "add.bf16 \t%rs1, %rs1, %rs1;", "add.f16x2 \t%r1, %r1, %r1;",
    "atom.global.add.f32 \t%f2, [%rd1], %f1;", "setp.lt.and.f32 \t%p1, %f1, %f1, %p2;", "mov.f32 \t%q1, %f1;",
    "mov.u32 \t%r1, %clock;", "mov.u32 \t%r1, elsewhere;", "bar.sync \t1;", "{ .reg .f128 wide; }", "call f, ();"])
def test_what_is_not_known_is_named(line, tmp_path):
    status, said = translated(line, tmp_path)
    assert status == 1 and f"a.ptx: line 9: not known to translate.py, " in said and said.endswith(line), said


def test_what_is_known_is_translated(tmp_path):
    assert translated("{ .reg .f32 twice; add.f32 twice, %f1, %f1; }", tmp_path) == (0, "")
    made = (tmp_path / "a.cpp").read_text()
    assert "twice = bits_of<uint32_t>(value_of(uint32_t(F1)) + value_of(uint32_t(F1)));" in made
    assert '{"_Z5scalePffs", &_Z5scalePffs, 14, 0, {{0, 8}, {8, 4}, {12, 2}}}' in made


def test_a_kernel_with_internal_linkage_is_translated(tmp_path):
    assert translated("ret;", tmp_path, KERNEL.removeprefix(".visible ")) == (0, "")
    assert '{"_Z5scalePffs", ' in (tmp_path / "a.cpp").read_text()


def test_a_parameter_that_is_not_known_is_named(tmp_path):
    (tmp_path / "a.ptx").write_text(KERNEL.replace(".param .f32", ".param .texref"))
    done = subprocess.run([sys.executable, TRANSLATE, tmp_path / "a.ptx", tmp_path / "a.cpp", "--namespace", "a"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "parameter '.param .texref" in done.stderr, done.stderr
