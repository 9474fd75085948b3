"""Every row of advice.def is tried on operands that it is for, or says why it cannot be."""
import re

import pytest
import torch

import replay_path  # noqa: F401
import dump_maker
import help_cases
import help_rows
from dump_file import read_dump
from help_trial import HelpTrial
from op_runs import Replay

ROWS = help_rows.HelpRows()
LEAST_TRIED = 0.9  # of rows whose code changes what the op computes


def rows_of(case):
    found = [i for i, (sentence, _, _) in enumerate(ROWS.rows) if case.row in sentence]
    assert found, f"no row has {case.row!r}"
    return found


def sentence_of(row, case):
    """A row as a finding has it."""
    name = re.sub(r"aten::_?|\..*", "", case.op)
    holes = {**help_cases.HOLES, "op": name, "forward_op": name, **case.holes}
    return re.sub(r"\{(\w+)\}", lambda hole: holes[hole[1]], ROWS.rows[row][0])


def dump_of(case, folder, text):
    name, _, overload = case.op.partition(".")

    def trained(value):
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point and case.trains:
            return value.clone().requires_grad_()
        return value

    args = {key: trained(value) for key, value in case.args.items()} if isinstance(case.args, dict) else \
        [trained(value) for value in case.args]
    finding = {"phase": case.phase, "kind": case.kind, "help": [text]}
    own = case.phase == "backward" and "this backward" in case.row
    if case.phase == "backward" and not own:  # the op of the backward pass matters little: the forward op is tried
        return dump_maker.make_dump(
            folder / "d.safetensors", "aten::mul", [torch.ones(2), torch.ones(2)], overload="Tensor",
            results=[torch.full((2,), float("nan"))], forward=(name, args, overload), finding=finding)
    return dump_maker.make_dump(folder / "d.safetensors", name, args, overload=overload, results=case.results,
                                finding=finding)


def judged(case, folder):
    row = rows_of(case)[0]
    text = sentence_of(row, case)
    return HelpTrial(Replay(read_dump(dump_of(case, folder, text)))).judge_all()[0]


@pytest.mark.parametrize("case", help_cases.CASES, ids=lambda case: f"{case.op}-{case.row[:40]}")
def test_a_row_on_its_operands(case, tmp_path):
    line = judged(case, tmp_path)
    assert line.judgement == case.judgement, line.said
    if case.change is not None:
        assert line.facts["largest_change"] == pytest.approx(case.change, rel=1e-5, abs=2e-7), line.said
    if case.judgement == "helps":
        assert line.facts["bad_values"] == 0 and line.said.startswith("tried: finite"), line.said
        assert not line.facts["bad_gradients"] or not case.trains, line.said


def test_every_row_is_tried_or_says_why_not():
    tried = {row for case in help_cases.CASES for row in rows_of(case)}
    for row, (sentence, _, trial) in enumerate(ROWS.rows):
        if trial.role in ("no", "aside"):
            assert trial.reason and row not in tried, sentence
        else:
            assert row in tried, f"no case for row {row}: {sentence}"


def test_most_code_is_tried():
    code = [trial for sentence, _, trial in ROWS.rows if help_rows.is_code(sentence) and trial.role != "aside"]
    share = sum(trial.role != "no" for trial in code) / len(code)
    assert len(code) > 100 and share >= LEAST_TRIED, f"{share:.3f} of {len(code)}"


@pytest.mark.parametrize("text, reason", [
    ("divide the learning rate by ten", "it acts on other steps than the dumped one"),
    ("check the number where it is computed: `assert math.isfinite(value)`", "a check changes no value"),
    ("write `log(1 - exp(x))` for x < 0 as `torch.log(-torch.expm1(x))`", "whether x is 0"),
    ("bound the operand from below: `__import__('os').system('true')`", "none of the help that numsan gives"),
    ("bound the operand from below: `x.clamp(min=1e-12).__class__()`", "is not one of the functions"),
    ("bound the operand from below: `x.clamp(min=1e-12).tolist()`", "is not one of the functions"),
    ("put eps inside the root: `(x + 1e-12).sqrt()`", "the forward op is not in the dump"),
])
def test_what_is_not_tried_says_why(text, reason, tmp_path):
    phase = "backward" if "root" in text else "forward"
    path = dump_maker.make_dump(tmp_path / "d.safetensors", "aten::log", [torch.tensor([0., 1.])],
                                finding={"help": [text], "phase": phase})
    line = HelpTrial(Replay(read_dump(path))).judge_all()[0]
    assert line.judgement == "not_tried" and reason in line.said, line


def test_the_sentence_counts_what_was_healthy(tmp_path):
    x = torch.linspace(0, 1, 32).requires_grad_()
    path = dump_maker.make_dump(tmp_path / "d.safetensors", "aten::log", [x],
                                finding={"help": ["bound the operand from below: `x.clamp(min=1e-12).log()`"]})
    line = HelpTrial(Replay(read_dump(path))).judge_all()[0]
    assert line.said == "tried: finite; the 31 healthy values change by at most 0; gradient finite"


def without_operand(folder, op, value, text):
    """A backward finding whose forward op has lost its operand, as where autograd kept the result alone."""
    path = dump_maker.make_dump(folder / "d.safetensors", "aten::mul", [torch.ones(2), torch.ones(2)],
                                overload="Tensor", results=[torch.full((2,), float("nan"))],
                                forward=(op, [torch.tensor(value)]), finding={"phase": "backward", "help": [text]})
    dump = read_dump(path)
    dump.forward.args[0].kind, dump.forward.args[0].why = "left_out", "its memory was given back"
    return HelpTrial(Replay(dump)).judge_all()[0]


def test_operands_that_were_left_out(tmp_path):
    text = "bound the operand from below: `x.clamp(min=1e-12).log()`"
    line = without_operand(tmp_path, "aten::log", [0.0, 1.0], text)
    assert line.judgement == "not_tried" and line.said == \
        "argument `self` was left out of the dump: its memory was given back"


@pytest.mark.parametrize("op, value, text", [
    ("aten::sqrt", [0.0, 4.0], "put eps inside the root: `(x + 1e-12).sqrt()`"),
    ("aten::rsqrt", [0.0, 4.0], "put eps inside the root: `(x + 1e-12).rsqrt()`"),
    ("aten::exp", [100.0, 0.0], "bound the operand: `x.clamp(max=88).exp()`"),
])
def test_an_operand_is_made_of_the_result(op, value, text, tmp_path):
    line = without_operand(tmp_path, op, value, text)
    name = op.removeprefix("aten::")
    assert line.judgement == "helps", line
    assert line.said.endswith(f"gradient finite; with an operand that {name} takes to the dumped result"), line
