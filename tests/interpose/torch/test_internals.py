"""What an operator keeps for its own backward is not looked at; what it gives the program is."""
import re

import pytest

import run_numsan

TABLE = run_numsan.REPO / "interpose/torch/describe/internals.def"
ROWS = re.findall(r'^NUMSAN_INTERNAL_(RETURN|ARGUMENT)\("([\w:]+)", (\d+)\)$', TABLE.read_text(), re.MULTILINE)

# Prints what torch says of each row: the types and names of that return or argument in all overloads.
SCHEMAS = """
import sys, torch
for kind, name, position in zip(*[iter(sys.argv[1:])] * 3):
    for schema in torch._C._jit_get_schemas_for_operator(name):
        if schema.overload_name.endswith("out"):
            continue
        value = (schema.returns if kind == "RETURN" else schema.arguments)[int(position)]
        print(kind, name, value.type, value.name)
"""

# CUDA's kernels pad logsumexp to blocks of 32 rows and write +inf there. These do as they do, on the CPU.
PADDED = """
import sys, torch
name, *what = sys.argv[1:]
forward, backward = name, name + "_backward"

def padded(scores):
    lse = torch.full((*scores.shape[:2], 32), float("inf"))
    lse[..., :scores.shape[2]] = torch.logsumexp(scores, -1)
    return lse

def attend(q, k, v, *rest, **options):
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    out = scores.softmax(-1) @ v
    if "bad output" in what:
        out[0, 0, 0, 0] = float("nan")
    return (out, padded(scores), *(torch.zeros((), dtype=torch.long) for _ in range(2 if "efficient" in name else 0)))

def attend_backward(grad, q, k, v, *rest, **options):
    lse = rest[2 if "efficient" in name else 1]  # behind the bias, the output
    p = torch.exp(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5 - lse[..., :q.shape[2], None])
    dp = grad @ v.transpose(-2, -1)
    ds = p * (dp - (dp * p).sum(-1, keepdim=True)) * q.shape[-1] ** -0.5
    if "bad gradient" in what:
        ds[0, 0, 0, 0] = float("nan")
    grads = ds @ k, ds.transpose(-2, -1) @ q, p.transpose(-2, -1) @ grad
    return (*grads, torch.zeros(())) if "efficient" in name else grads

library = torch.library.Library("aten", "IMPL")
library.impl(forward, attend, "CPU", allow_override=True)
library.impl(backward, attend_backward, "CPU", allow_override=True)
torch.manual_seed(0)
q, k, v = (torch.randn(1, 2, 5, 16, requires_grad=True) for _ in range(3))
arguments = (None, True) if "efficient" in name else ()
out, lse = getattr(torch.ops.aten, name)(q, k, v, *arguments)[:2]
assert lse.isinf().any()
out.square().sum().backward()
print(q.grad.isfinite().all().item())
"""

MASKED_ROW = """
import torch
import torch.nn.functional as F
torch.manual_seed(0)
q, k, v = (torch.randn(1, 2, 8, 16, requires_grad=True) for _ in range(3))
mask = torch.ones(8, 8, dtype=torch.bool).tril()
mask[3] = False
out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
out.square().sum().backward()
x = torch.randn(6, 2, 4, requires_grad=True)
F.ctc_loss(x.log_softmax(-1), torch.tensor([[1, 2, 2], [1, 3, 1]]), [6, 6], [3, 3]).backward()
print([t.grad.isfinite().all().item() for t in (q, k, v, x)])
"""

ATTENTION = ["_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention_for_cpu"]


pytestmark = pytest.mark.xdist_group("no_key")  # one process has torch without the key


@pytest.fixture(params=["usual", "record"])
def hook(request, warm):
    """Environments in which the hook on the dispatch key, and record functions, see the operators."""
    return None if request.param == "usual" else request.getfixturevalue("no_key")


def test_every_row_is_a_tensor_of_that_name(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(SCHEMAS)
    done = run_numsan.run_forked(program, args=[word for row in ROWS for word in row], cwd=tmp_path)
    assert done.returncode == 0, done.describe()
    found = [line.split(" ") for line in done.stdout.splitlines()]
    assert len(ROWS) >= 18 and {tuple(row[:2]) for row in found} == {row[:2] for row in ROWS}
    names = {"RETURN": {"logsumexp", "log_sumexp", "softmax_logsumexp", ""}, "ARGUMENT": {"logsumexp", "log_alpha"}}
    for kind, op, type_, name in found:
        assert type_ == "Tensor" and name in names[kind] and (name != "" or op == "aten::_ctc_loss"), (kind, op, name)


@pytest.mark.parametrize("op", ATTENTION)
def test_padding_is_no_finding(op, hook, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PADDED)
    done = run_numsan.run_watched_fork(program, args=[op], env=hook, cwd=tmp_path, clean=True)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.describe()
    assert done.report is not None and done.findings == [], done.describe()


@pytest.mark.parametrize("op", ATTENTION)
@pytest.mark.parametrize("where", ["output", "gradient"])
def test_a_bad_value_beside_it_is_found_where_it_was_made(op, where, hook, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PADDED)
    done = run_numsan.run_watched_fork(program, args=[op, f"bad {where}"], env=hook, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.describe()
    made_by = f"aten::{op}" if where == "output" else f"aten::{op}_backward"
    assert [finding["op"] for finding in done.findings] == [made_by], done.describe()
    assert "stayed masked" not in done.stderr, done.describe()


def test_rows_that_are_masked_whole_and_alignments_that_cannot_be(hook, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(MASKED_ROW)
    done = run_numsan.run_watched_fork(program, env=hook, cwd=tmp_path, clean=True)
    assert (done.returncode, done.stdout) == (0, "[True, True, True, True]\n"), done.describe()
    assert done.report is not None and done.findings == [], done.describe()
