"""The table of operators against the operators of the installed torch: names, and what rows say of values.

    python tests/host/ops/test_aten.py --write    takes over which operators have no row (unclassified.txt)
"""
import itertools
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import operator_table  # noqa: E402
import run_numsan  # noqa: E402

UNCLASSIFIED = pathlib.Path(__file__).with_name("unclassified.txt")
PROBE = pathlib.Path(__file__).with_name("probe_operators.py")


def probed(question):
    """What probe_operators.py prints in the interpreter that has torch, one line an answer."""
    done = run_numsan.run_forked(PROBE, args=[question], timeout=300)
    assert done.returncode == 0, done.describe()
    return done.stdout.splitlines()


def listed():
    return [line for line in UNCLASSIFIED.read_text().splitlines() if not line.startswith("#")]


def without_row():
    table = operator_table.by_name()
    return [name for name in probed("kernels") if name not in table]


def test_each_name_is_an_operator_of_torch():
    names = set(probed("names"))
    unknown = [name for name in operator_table.by_name() if name not in names]
    assert not unknown, f"operators.def names what torch does not have: {', '.join(unknown)}"


def test_operators_without_a_row_are_listed():
    now, before = without_row(), listed()
    new = sorted(set(now) - set(before))
    gone = sorted(set(before) - set(now))
    assert not new, f"operators without a row in operators.def: {', '.join(new)}; --write lists them as unclassified"
    assert not gone, f"not unclassified any more: {', '.join(gone)}; --write takes them off the list"


def test_operators_of_all_namespaces_of_torch_are_torchs(tmp_path):
    found = probed("others")
    namespaces = {name.split("::")[0] for name in found}
    assert {"c10d", "fsdp", "symm_mem", "streams", "export"} <= namespaces, "some parts of torch were not imported"
    source = tmp_path / "namespaces.cpp"
    checks = [f'static_assert(numsan::is_of_torch("{name}"));' for name in found]
    checks += [f'static_assert(!numsan::is_of_torch("{name}::op_of_mine"));'
               for name in ("mine", "export", "onnx", "profiler", "quantization", "sparse", "streams")]
    source.write_text("\n".join(['#include "host/ops/op_traits.h"', *checks]))
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-fsyntax-only", f"-I{run_numsan.REPO}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


PREFIXES = ("", "_", "native_", "cudnn_", "_cudnn_", "miopen_", "mkldnn_", "mps_", "_mps_", "_thnn_fused_", "slow_",
            "_slow_")
SUFFIXES = ("", "_forward", "_backward", "_backward_data", "_overrideable", "_relu", "_add_relu", "_transpose",
            "_functional", "_impl", "_with_update", "_no_update")


def twin_of(name, table):
    """An operator of the table that `name` is a device's variant of, or a derivative; None where there is none."""
    if name.startswith("_scaled_dot_product_"):
        return "_scaled_dot_product_flash_attention"
    cores = {name.removeprefix(prefix) for prefix in PREFIXES if name.startswith(prefix)}
    cores = {core.removesuffix(suffix) for core in cores for suffix in SUFFIXES if core.endswith(suffix)}
    others = (prefix + core + suffix for core in sorted(cores - {""}) for prefix in PREFIXES
              for suffix in ("", "_forward"))
    return next((other for other in others if other in table and other != name), None)


def test_twins_of_an_operator_have_a_row():
    table = operator_table.by_name()
    twins = {name: twin_of(name, table) for name in without_row()}
    found = [f"{name} ({twin})" for name, twin in twins.items() if twin is not None]
    assert not found, f"no row in operators.def, unlike the operator that they are a variant of: {', '.join(found)}"


@pytest.mark.parametrize("name", ["_cudnn_ctc_loss", "cudnn_batch_norm", "miopen_rnn", "mkldnn_linear", "gelu_backward",
                                  "_scaled_dot_product_new_attention", "cudnn_convolution_transpose",
                                  "_scaled_dot_product_cudnn_attention_backward"])
def test_a_new_twin_is_noticed(name):
    rows = {other: row for other, row in operator_table.by_name().items() if other != name}
    assert twin_of(name, rows) is not None


@pytest.mark.parametrize("name", ["index_copy", "hypot", "linalg_qr", "unfold_backward"])
def test_other_operators_are_no_twins(name):
    assert twin_of(name, operator_table.by_name()) is None


def test_rows_hold_of_what_torch_computes():
    """Of every operator that can be called with one to three tensors: a result is finite where its row says so, and is
    not where a kept operand is not."""
    answers = [line.split("\t") for line in probed("semantics")]
    wrong = [f"{name}: {what}" for name, verdict, what in answers if verdict == "wrong"]
    assert not wrong, "\n".join(wrong)
    assert sum(verdict == "held" for _, verdict, _ in answers) >= 60, "hardly any operator was called"


@pytest.mark.parametrize("field", ["form", "total", "kept", "op_class", "in_place", "roles"])
def test_the_reader_reads_each_field(field):
    assert any(field in row.fields for row in operator_table.rows())


def test_a_name_stands_in_one_row():
    names = list(itertools.chain.from_iterable(row.names for row in operator_table.rows()))
    assert len(names) == len(set(names))


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(__doc__)
    UNCLASSIFIED.write_text("# Operators with a kernel of their own, of torch 2.11, that have no row in operators.def\n"
                            + "\n".join(without_row()) + "\n")
