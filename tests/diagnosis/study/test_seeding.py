"""The tables of faults apply: every replacement is there once, and what comes of it is Python."""
import pytest

import fault_kinds
import seeding


@pytest.mark.quick
@pytest.mark.parametrize("base", seeding.BASES)
def test_every_fault_applies(base):
    healthy, *seeded = seeding.of_base(base)
    assert healthy.kind is None and len(seeded) >= 20, f"{len(seeded)} faults"
    for program in seeded:
        compile(program.text, program.name, "exec")
        assert program.text != healthy.text, program.name
        assert program.lines and max(program.lines) <= len(program.text.splitlines()), program.name


def test_bases_are_the_files_and_both_halves_have_all_that_they_need():
    files = {path.stem for path in (seeding.FOLDER / "bases").glob("*.py")}
    assert files == set(seeding.OPEN) | set(seeding.HELD) and not set(seeding.OPEN) & set(seeding.HELD)
    for half in (seeding.OPEN, seeding.HELD):
        kinds = {program.kind for program in seeding.programs(half)}
        coded = {kind for kind, of in fault_kinds.KINDS.items() if of.code}
        assert coded <= kinds, coded - kinds


def test_no_program_knows_of_numsan():
    for program in seeding.programs():
        assert "numsan" not in program.text.lower(), program.name


def test_text_that_is_missing_or_there_twice_is_named():
    with pytest.raises(ValueError, match=r"one.faults, a/b: the text to replace is there 2 times.*'x = 1'"):
        seeding.replaced("x = 1\nx = 1\n", [(["x = 1"], ["x = 2"])], "one.faults, a/b")
    with pytest.raises(ValueError, match=r"there 0 times, expected once: 'y'"):
        seeding.replaced("x = 1\n", [(["y"], ["z"])], "one.faults, a/b")


def test_changed_lines_are_those_of_the_new_text():
    text, lines = seeding.replaced("a\nb\nc\nd\n", [(["b"], ["b1", "b2"]), (["d"], ["e"])], "")
    assert text == "a\nb1\nb2\nc\ne\n" and lines == {2, 3, 5}
    text, lines = seeding.replaced("f(x, lr=1)\ng\n", [(["lr=1"], ["lr=2"])], "")
    assert text == "f(x, lr=2)\ng\n" and lines == {1}


def test_table_is_read(tmp_path):
    path = tmp_path / "a.faults"
    path.write_text("# about it\nplace step: s()\n\n== dead-layer: last\n- a\n-  b\n+ c\n- d\n+\n")
    table = seeding.parsed(path)
    assert table.places == {"step": ["s()"]}
    assert table.rows == [("dead-layer", "last", [(["a", " b"], ["c"]), (["d"], [""])])]
    path.write_text("== no-such-kind\n")
    with pytest.raises(ValueError, match="a.faults: no kind of fault is 'no-such-kind'"):
        seeding.parsed(path)
    path.write_text("replace this\n")
    with pytest.raises(ValueError, match="a.faults: expected .* not 'replace this'"):
        seeding.parsed(path)
