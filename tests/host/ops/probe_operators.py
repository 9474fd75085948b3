"""Asks the installed torch about its operators.

usage: probe_operators.py names|kernels|semantics|others

names      plain names of all operators of aten
kernels    those of them that compute tensors by a kernel of their own
others      operators that torch registers in other namespaces than aten; those for its own tests left out
semantics  NAME, held|wrong|not called, WHY of each row of the table that says which results are finite
"""
import importlib
import pathlib
import sys

import torch
import torch._dynamo  # registers operators of its own

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import operator_table  # noqa: E402

NAN, INF = float("nan"), float("inf")
# Values with every sign, ones and zeros, and sizes whose products float32 holds.
ORDINARY = [[0.5, -2.0, 0.0, 1.0], [1.0, 3.0, -1.0, 0.25], [2.0, 1.0, -3.0, 0.0]]
LARGE = [[1e30, -1e-30, 0.0, 3e38], [-2e38, 1e-40, 1.0, 0.0], [1e10, -1.0, 2e-45, 1e38]]
# With nothing that a domain or a denominator makes bad.
HARMLESS = [[0.5, 0.25, 0.75, 0.5], [0.5, 0.25, 0.5, 0.75], [0.25, 0.5, 0.75, 0.5]]
SHAPES = {1: ([4],), 2: ([4], [4]), 3: ([4], [4], [4])}
MATRICES = {"mm": ([2, 2], [2, 2]), "bmm": ([1, 2, 2], [1, 2, 2]), "mv": ([2, 2], [2]),
            "addmm": ([2, 2], [2, 2], [2, 2]), "baddbmm": ([1, 2, 2], [1, 2, 2], [1, 2, 2]),
            "addbmm": ([2, 2], [1, 2, 2], [1, 2, 2]), "addmv": ([2], [2, 2], [2])}


def schemas():
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::"):
            yield schema


def has_kernel(schema):
    """Computes tensors, and not by calling other operators only."""
    returns = any("Tensor" in str(value.type) for value in schema.returns)
    writes = any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments)
    if not returns and not writes:
        return False
    full = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    try:
        has = {key: torch._C._dispatch_has_kernel_for_dispatch_key(full, key)
               for key in ("CompositeImplicitAutograd", "CPU", "CUDA")}
    except RuntimeError:
        return False  # TorchScript's own, which the dispatcher never calls
    return has["CPU"] or has["CUDA"] or not has["CompositeImplicitAutograd"]


def called(name, values):
    """The results of the operator for as many of `values` as its arguments take; None where it takes others."""
    packet = getattr(torch.ops.aten, name, None)
    for count in (1, 2, 3):
        shapes = MATRICES.get(name, SHAPES[count])
        if len(shapes) != count or packet is None:
            continue
        tensors = [torch.tensor((row * 4)[:torch.Size(shape).numel()]).reshape(shape)
                   for row, shape in zip(values, shapes)]
        for arguments in (tensors, [tensors], [*tensors, 0.5], [*tensors, 0, False]):
            try:
                results = packet(*arguments)
            except (RuntimeError, TypeError, IndexError):
                continue
            results = results if isinstance(results, (tuple, list)) else [results]
            floats = [result for result in results if isinstance(result, torch.Tensor) and result.is_floating_point()]
            if floats:
                return floats, count
    return None


def is_finite(results):
    return all(bool(torch.isfinite(result).all()) for result in results)


def with_bad(values, operand, bad):
    rows = [list(row) for row in values]
    rows[operand][0] = bad
    return rows


def answers(name, row):
    """(verdict, why) of each claim of the row that can be tried."""
    total, kept = row.fields.get("total"), row.fields.get("kept")
    if total in ("None", "Slow", "Fast"):
        # A derivative reads what the forward op made, which is not of any size.
        for values in (ORDINARY, LARGE) if total == "None" and not name.endswith("_backward") else (ORDINARY,):
            made = called(name, values)
            if made is None:
                yield "not called", "takes other arguments"
                return
            yield ("held" if is_finite(made[0]) else "wrong"), f"total {total} of finite operands"
    if kept is None:
        return
    made = called(name, HARMLESS)
    if made is None or not is_finite(made[0]):
        yield "not called", "takes other arguments"
        return
    overwritten = int(row.fields.get("in_place") == "Overwriting" and hasattr(torch.ops.aten, name + "_"))
    for operand in range(overwritten, min(int(row.fields.get("keepers", 1)), made[1])):
        for bad in (NAN,) if kept == "kNaN" else (NAN, INF):
            results = called(name, with_bad(HARMLESS, operand, bad))
            kept_it = results is not None and not is_finite(results[0])
            yield ("held" if kept_it else "wrong"), f"keeps {bad} of operand {operand}"


def semantics():
    for row in operator_table.rows():
        for name in row.names:
            for verdict, why in answers(name, row):
                yield f"{name}\t{verdict}\t{why}"


def others():
    for part in ("ao.quantization", "ao.quantization.fx", "ao.ns.fx.graph_matcher", "distributed", "distributed.fsdp",
                 "distributed.tensor", "distributed.pipelining", "distributed._symmetric_memory", "distributed.nn",
                 "distributed.rpc", "export", "onnx", "_inductor.lowering", "nn.attention.flex_attention",
                 "utils.flop_counter", "utils._debug_mode"):
        importlib.import_module(f"torch.{part}")
    found = {name.split(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    return sorted(name for name in found if not name.startswith("aten::") and "test" not in name.split("::")[0])


def main(question):
    if question == "semantics":
        return semantics()
    if question == "others":
        return others()
    kept = [schema for schema in schemas() if question == "names" or has_kernel(schema)]
    return sorted({operator_table.plain(schema.name) for schema in kept} - {""})


if __name__ == "__main__":
    if sys.argv[1:] not in (["names"], ["kernels"], ["semantics"], ["others"]):
        raise SystemExit(__doc__)
    print("\n".join(main(sys.argv[1])))
