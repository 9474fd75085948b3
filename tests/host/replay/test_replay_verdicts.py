"""What runs of made-up operators show: each mechanism, and that none is shown without reason."""
import pytest
import torch

import replay_path  # noqa: F401
import dump_maker
import op_runs
import operands
from dump_file import read_dump
from op_runs import Replay
from verdicts import Verdict

NAN, INF = float("nan"), float("inf")
CALLS = []
LIBRARY = torch.library.Library("numsan_replay_test", "DEF")
LIBRARY.define("racy(Tensor x) -> Tensor")
LIBRARY.define("only_contiguous(Tensor x) -> Tensor", tags=[torch.Tag.pointwise])
LIBRARY.define("tired(Tensor x) -> Tensor")


def racy(x):
    CALLS.append(1)
    return x / 0 if len(CALLS) % 3 == 0 else x.clone()


def only_contiguous(x):
    return x.clone() if x.is_contiguous() or x.dtype == torch.float64 else x * NAN


LIBRARY.impl("racy", racy, "CPU")
LIBRARY.impl("only_contiguous", only_contiguous, "CPU")


def verdict_of(folder, op, args, **more):
    replay = Replay(read_dump(dump_maker.make_dump(folder / "a.safetensors", op, args, **more)))
    return replay, Verdict(replay)


def shown(verdict):
    return [one.mechanism for one in verdict.shown]


def test_a_domain_is_no_fault_of_the_type(tmp_path):
    _, verdict = verdict_of(tmp_path, "aten::log", [torch.tensor([0., -1., 1.])])
    assert verdict.reproduced and not verdict.shown and verdict.bad_count == 2
    assert "the operands make them" in verdict.notes[0]
    assert verdict.outcome == "2 values are not finite, the same as in the program"


def test_an_overflow_is_no_loss_of_precision(tmp_path):
    _, verdict = verdict_of(tmp_path, "aten::mul", [torch.full((2,), 300.).half()] * 2, overload="Tensor")
    assert verdict.reproduced and not verdict.shown
    assert verdict.notes == ["2 values are finite in float64 and beyond float16's range, up to 90000"]


def test_zeros_that_a_type_made_are_told(tmp_path):
    """Of a finding about them no value is bad, and no mechanism of a bad value is shown."""
    small = torch.tensor([1e-5, 1e-5, 0., 1.]).half()
    _, verdict = verdict_of(tmp_path, "aten::mul", [small, small], overload="Tensor")
    assert verdict.reproduced and not verdict.shown and not verdict.bad_count
    assert len(verdict.notes) == 1
    assert verdict.notes[0].startswith("2 of 3 zeros are not zero in float64, of magnitudes up to 1.00"), verdict.notes
    _, verdict = verdict_of(tmp_path, "aten::relu", [torch.tensor([-1., 1.])])
    assert verdict.notes == [], "a zero that float64 has, too"


def test_prec(tmp_path):
    """The squares of 1e30 leave float32, the norm does not."""
    _, verdict = verdict_of(tmp_path, "aten::linalg_vector_norm", [torch.tensor([1e30, 1e30])])
    assert verdict.reproduced and shown(verdict) == ["PREC"]
    assert verdict.shown[0].because == ("1 of 1 value that is not finite in float32 is finite in float64, and within "
                                        "float32's range")


def test_kern_of_a_layout(tmp_path):
    x = torch.arange(6.0).reshape(2, 3).t()
    replay, verdict = verdict_of(tmp_path, "numsan_replay_test::only_contiguous", [x])
    assert verdict.reproduced and shown(verdict) == ["KERN"], verdict.shown
    assert verdict.shown[0].because == ("6 of 6 values that are not finite on cpu are finite of contiguous operands, "
                                        "in the same type, and in float64")


def test_kern_of_a_device_that_is_not_here(tmp_path):
    _, verdict = verdict_of(tmp_path, "aten::exp", [torch.zeros(2)], results=[torch.tensor([NAN, 1])], device="cuda:0")
    assert not verdict.reproduced and shown(verdict) == ["KERN"]
    assert "cuda:0 is not here" in verdict.shown[0].because and "on cpu, as cuda:0 is not here" in verdict.outcome


def test_kern_of_a_device(tmp_path, monkeypatch):
    """A device whose exp gives nan for 0, made of the CPU's."""
    run, made = operands.Operands.run, []

    def on_device(self, setting):
        made.append(setting.device)
        if setting.device == "cuda:0" and setting.dtype is None:
            return [torch.tensor([NAN, 1.0])]
        return run(self, operands.replace(setting, device="cpu"))

    monkeypatch.setattr(op_runs, "available", lambda device: True)
    monkeypatch.setattr(operands.Operands, "run", on_device)
    replay, verdict = verdict_of(tmp_path, "aten::exp", [torch.zeros(2)], results=[torch.tensor([NAN, 1])],
                                 device="cuda:0")
    assert verdict.reproduced and shown(verdict) == ["KERN"] and replay.run("cpu") is not None
    assert verdict.shown[0].because == ("1 of 1 value that is not finite on cuda:0 is finite on the CPU, in the same "
                                        "type, and in float64")


def test_race(tmp_path):
    CALLS.clear()
    _, verdict = verdict_of(tmp_path, "numsan_replay_test::racy", [torch.ones(2)], results=[torch.tensor([INF, INF])])
    assert shown(verdict) == ["RACE"] and "of 8 repeats differ" in verdict.shown[0].because
    assert "not the same values are finite" in verdict.shown[0].because


def test_hw(tmp_path):
    replay, verdict = verdict_of(tmp_path, "aten::mul", [torch.ones(4), torch.ones(4)], overload="Tensor",
                                 results=[torch.tensor([1, 1, NAN, 1])])
    assert not verdict.reproduced and shown(verdict) == ["HW"], verdict.shown
    assert verdict.outcome == "1 of 1 value that was not finite is finite on cpu"


def test_no_hw_of_another_torch_or_of_rounding(tmp_path):
    _, verdict = verdict_of(tmp_path, "aten::mul", [torch.ones(4), torch.ones(4)], overload="Tensor",
                            results=[torch.tensor([1, 1, NAN, 1])], torch="1.0.0")
    assert not verdict.shown and "the program had torch 1.0.0" in verdict.notes[0]
    x = torch.rand(4)
    _, verdict = verdict_of(tmp_path, "aten::exp", [x], results=[x.exp() * (1 + 2e-7)])
    assert verdict.reproduced and not verdict.shown


def test_memory_that_nothing_wrote(tmp_path):
    args = {"self": torch.ones(4)}
    _, verdict = verdict_of(tmp_path, "aten::empty_like", args, results=[torch.full((4,), NAN)])
    assert not verdict.reproduced and "nothing has written" in verdict.outcome
    assert not {"HW", "KERN"} & set(shown(verdict))


def test_the_order_decides(tmp_path):
    """3e38 + 3e38 - 3e38 leaves float32 one way, and not the other."""
    _, verdict = verdict_of(tmp_path, "aten::sum", [torch.tensor([3e38, 3e38, -3e38])])
    assert verdict.reproduced and shown(verdict) == ["PREC"]
    assert verdict.notes == ["the order decides: 1 of 1 value that is not finite is finite with the operands reversed, "
                             "and 0 others are not"]


def test_results_that_were_left_out(tmp_path):
    path = dump_maker.make_dump(tmp_path / "a.safetensors", "aten::log", [torch.tensor([0., -1.])],
                                finding={"outputs": [{"nan": 1, "pos_inf": 0, "neg_inf": 1}]})
    dump = read_dump(path)
    dump.op.results[0].kind = "left_out"
    verdict = Verdict(Replay(dump))
    assert verdict.reproduced and "as the finding says: 1 nan, 0 +inf, 1 -inf" in verdict.outcome
    dump.finding["outputs"] = []
    assert not Verdict(Replay(dump)).reproduced


@pytest.mark.parametrize("name, overload, args", [
    ("aten::sum", "dim_IntList", [torch.rand(3, 70), [1]]), ("aten::mm", "", [torch.rand(3, 50), torch.rand(50, 4)]),
    ("aten::addmm", "", [torch.rand(4), torch.rand(3, 50), torch.rand(50, 4)]),
    ("aten::bmm", "", [torch.rand(2, 3, 50), torch.rand(2, 50, 4)]),
    ("aten::_softmax", "", [torch.rand(3, 9), 1, False]),
    ("aten::add", "Tensor", [torch.rand(3, 1), torch.rand(1, 4)]), ("aten::var", "correction", [torch.rand(40)]),
    ("aten::linalg_vector_norm", "", [torch.rand(3, 40), 2, [1]]), ("aten::logsumexp", "", [torch.rand(3, 40), [0]]),
    ("aten::native_batch_norm", "", [torch.rand(8, 3), torch.rand(3), torch.rand(3), None, None, True, 0.1, 1e-5]),
])
def test_reversed_operands_give_the_same_within_rounding(name, overload, args, tmp_path):
    replay, verdict = verdict_of(tmp_path, name, args, overload=overload)
    turned = replay.run("reversed")
    assert turned.agreement.close, turned.agreement
    assert replay.run("float64").agreement.close and not verdict.shown
