"""Tables of C++ read as rows of Python."""
import re

import replay_path
import def_tables


def test_rows_of_advice():
    table = def_tables.advice()
    text = (replay_path.SOURCES.parent / "cause" / "advice.def").read_text()
    assert len(table) == len(re.findall(r"^NUMSAN_ADVICE\(", text, re.MULTILINE)) > 150
    assert all(sentence and fields["trial"] for sentence, fields in table)
    by_sentence = dict(table)
    assert by_sentence['select the operands before this op, `x[ok]`, instead of hiding its result after it'] == {
        "facts": "hidden", "fix": "mask", "trial": "select"}
    assert any('compute_mode="donot_use_mm_for_euclid_dist"' in sentence for sentence in by_sentence)


def test_rows_of_mechanisms():
    assert def_tables.mechanisms()["KERN"] == ("NS111", "library kernel defect") and len(def_tables.mechanisms()) >= 15
