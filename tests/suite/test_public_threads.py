"""The programs made from public threads: how labels are checked, which families are frozen, how they are scored."""
import json
import re

import pytest

import manifest
import markers
import running
import tables
import targets

pytestmark = pytest.mark.quick
BUG = '''"""A story."""
# label: phase=forward mechanism=DOM category=N4 category_alt= birth_op=aten::log kind=-inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=silence needs= fragile=no
# label: thread=owner/name#12 uses=timm,torchvision fix_kind=eps
# fix: a small number is added,
# fix: as the maintainer says
x = 1  # BUG
'''
HEALTHY = '''"""A story."""
# label: tempts=zero max_severity=none dtype=fp32 needs= family=silence thread=https://a.b/c uses=
# why: zero is right
x = 1
'''


def built(tmp_path, bug=BUG, healthy=HEALTHY, name="t001_x.py"):
    (tmp_path / "threads").mkdir()
    (tmp_path / "threads" / name).write_text(bug)
    (tmp_path / "threads" / "h001_y.py").write_text(healthy)
    return manifest.build(tmp_path, "threads")


def test_entries(tmp_path):
    entries, errors = built(tmp_path)
    assert not errors
    bug, healthy = entries["programs"][0], entries["controls"][0]
    assert (bug["id"], bug["file"]) == ("t001", "threads/t001_x.py")
    assert (bug["thread"], bug["fix_kind"]) == ("owner/name#12", "eps")
    assert bug["uses"] == ["timm", "torchvision"] and bug["fix"] == "a small number is added, as the maintainer says"
    assert (healthy["id"], healthy["why"], healthy["thread"]) == ("h001", "zero is right", "https://a.b/c")
    assert bug["frozen"] == healthy["frozen"] == manifest.is_frozen("silence")


@pytest.mark.parametrize("old, new, message", [
    ("thread=owner/name#12", "thread=somewhere", "4: label thread=somewhere"),
    ("fix_kind=eps", "fix_kind=epss", "4: label fix_kind=epss.*did you mean eps"),
    ("uses=timm", "uses=numpy", "4: label uses: `numpy`"),
    (" family=silence", "", "1: label `family` is missing"),
    ("family=silence", "family=Silence", "3: label family=Silence"),
    ("# fix: a small number is added,\n# fix: as the maintainer says\n", "", "1: the comment `# fix: ...` is missing"),
    ("  # BUG", "", "1: 0 lines are marked"),
    ("x = 1", "y = 1\n" * 110 + "x = 1", "1[0-9][0-9]: 1[0-9][0-9] lines, at most 110"),
])
def test_labels_are_checked_with_file_and_line(tmp_path, old, new, message):
    _, errors = built(tmp_path, BUG.replace(old, new))
    assert len(errors) == 1
    with pytest.raises(AssertionError, match=f"t001_x.py:{message}"):
        raise AssertionError(errors[0])


def test_a_file_with_another_name_is_an_error(tmp_path):
    _, errors = built(tmp_path, name="t1_x.py")
    assert len(errors) == 1 and "file name does not match" in errors[0]


def test_families_are_frozen_whole_about_one_in_three_and_always_the_same():
    names = ("mixture_density", "half_adam", "edge_angles")
    assert [manifest.is_frozen(name) for name in names] == [False, True, False]
    many = [manifest.is_frozen(f"family{number}") for number in range(3000)]
    assert 900 < sum(many) < 1100
    entries, _ = manifest.build(name="threads")
    every = entries["programs"] + entries["controls"]
    assert all(entry["frozen"] == manifest.is_frozen(entry["family"]) for entry in every)
    parts = [manifest.of_families(entries, name) for name in ("open", "frozen")]
    assert [entry["id"] for part in parts for entries in part.values() for entry in entries]
    assert sum(len(entries) for part in parts for entries in part.values()) == len(every)


def test_mended_programs_are_healthy_ones(tmp_path):
    entries, _ = built(tmp_path)
    healthy = manifest.mended(entries)
    assert healthy["programs"] == [] and [entry["id"] for entry in healthy["controls"]] == ["t001-fixed"]
    assert healthy["controls"][0]["max_severity"] == "none"


def run_of(entry, line):
    finding = {"severity": "error", "op": "aten::log", "phase": "forward", "kind": "-inf", "step": 2, "line": line,
               "mechanism": "DOM", "rank": None, "into": "loss", "ranking": [[entry["category"], 0.9]]}
    return {"findings": [finding], "exit_status": 0, "bare_exit_status": 0, "same_output": True, "problems": [],
            "seconds": 1.0, "bare_seconds": None}


def test_scores_of_open_and_frozen_families_apart_and_no_word_on_a_frozen_program(tmp_path):
    entries, _ = built(tmp_path)
    first = {**entries["programs"][0], "frozen": False}
    second = {**first, "id": "t002", "file": "threads/t002_z.py", "frozen": True}
    both = {"programs": [first, second], "controls": []}
    runs = {one["id"]: run_of(one, line=99) for one in both["programs"]}
    text = "\n".join(tables.by_families(both, runs))
    assert "t001_x.py: line" in text and "t002" not in text
    assert text.count("1 bug programs, 0 healthy ones") == 2
    assert len(re.findall(r"^line, lenient +0\.000 +0/1 ", text, re.M)) == 2


def test_targets_hold_for_open_and_for_frozen_families(tmp_path):
    entries, _ = built(tmp_path)
    first = {**entries["programs"][0], "frozen": False}
    both = {"programs": [first, {**first, "id": "t002", "frozen": True}], "controls": []}
    runs = {one["id"]: run_of(one, line=first["line"]) for one in both["programs"]}
    runs["t001"]["findings"][0]["fixes"] = ["eps"]
    lines = targets.missed_of_families(both, runs, {"help": {"at_least": 0.7}})
    assert lines == ["frozen families: target missed: help names the fix is 0.000, wanted at least 0.7"]
    alone = manifest.of_families(both, "open")
    assert not targets.missed_of_families(alone, runs, {"help": {"at_least": 0.7}})
    wanted = json.loads((manifest.SUITE / "threads" / "targets.json").read_text())
    assert set(wanted) <= set(tables.TITLES) and wanted["help"] == {"at_least": 0.7}


def test_words_of_fixes_are_those_of_help():
    """What help changes has the same words; only help can be a look at what there is."""
    table = (running.REPO / "host/finding/fix_kinds.def").read_text()
    assert set(re.findall(r"^NUMSAN_FIX_KIND\((\w+),", table, re.M)) == {*markers.FIX_KINDS, "check"}


def test_words_of_fixes_are_in_the_readme():
    readme = (manifest.SUITE / "README.md").read_text()
    assert all(f"`{kind}`" in readme for kind in markers.FIX_KINDS)
