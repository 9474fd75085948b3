"""The tiers' rule and the scan launches' limits, with the tables and numbers of the sources that they run by.

What TierPolicy::reads (host/event/tier_policy.cpp), OutputScans (host/device/device_scans.cpp) and may_defer
(cuda/deferral.cpp) do with them is said here once more in Python; tests/bench/test_model_bytes.py holds what is read
against what the engine counts.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import operator_table  # noqa: E402

TIERS = ("full", "boundary", "sentinel")


class SourceChanged(Exception):
    """A table or number is not where it was."""


def table(path, macro):
    """The arguments of each `macro(...)` line of a .def file, without quotes."""
    rows = re.findall(rf"^{macro}\((.*)\)$", (ROOT / path).read_text(), re.MULTILINE)
    if not rows:
        raise SourceChanged(f"{path}: no line {macro}(...)")
    return [tuple(part.strip().strip('"') for part in row.split(",")) for row in rows]


def number(path, name):
    """The value of `name = A;` or `name = A << B;` in a header."""
    found = re.search(rf"\b{name} = (\d+)(?: << (\d+))?;", (ROOT / path).read_text())
    if found is None:
        raise SourceChanged(f"{path}: no constant {name}")
    return int(found[1]) << int(found[2] or 0)


def table_capacity():
    """Tensors that the larger table of a launch takes."""
    found = re.search(r"using ScanTableLarge = ScanTable<(\d+), \d+>;", (ROOT / "cuda/kernel/scan_table.h").read_text())
    if found is None:
        raise SourceChanged("cuda/kernel/scan_table.h: no ScanTableLarge")
    return int(found[1])


POLICY, SCAN = "host/event/tier_policy.h", "cuda/kernel/scan_policy.h"
SMALL_BYTES, TINY_BYTES = number(POLICY, "kSmallBytes"), number(POLICY, "kTinyBytes")
DEFER_BELOW, HELD_BYTES = number(SCAN, "kDeferBelowBytes"), number(SCAN, "kDeferredBytes")
ALONE_BYTES = number(SCAN, "kAloneBytes")
BATCH_OUTPUTS, TABLE_TENSORS = number(SCAN, "kBatchOutputs"), table_capacity()
INPUTS_LOOKED_AT = number("host/base/device_scanner.h", "kMaxInputs")
LOGGED_OUTPUTS = number("host/event/op_log.h", "kMaxOutputs")
OPERATORS = operator_table.by_name()
DESCRIBE = "interpose/torch/describe/"
VIEWS = {"aten::" + row[0] for row in table(DESCRIBE + "fallthrough.def", "NUMSAN_FALLTHROUGH")}
INTERNAL_RETURNS = {(name, int(at)) for name, at in table(DESCRIBE + "internals.def", "NUMSAN_INTERNAL_RETURN")}
SILENT_WRITES = {(name, int(at)) for name, at in table(DESCRIBE + "silent_writes.def", "NUMSAN_SILENT_WRITE")}


def listed_class(name):
    """The class that the table gives an operator, None where its schema decides."""
    return operator_table.listed_class(name, OPERATORS)


def is_boundary(op):
    row = OPERATORS.get(operator_table.plain(op))
    return row is not None and "kBoundary" in row.roles


def read(event, tier, place):
    """Those of the event's scannable outputs that the tier reads when they are made, in memory of the `host` or of a
    `device`; there in steps that its budget pays for."""
    if tier == "full" or (tier == "boundary" and is_boundary(event.op)):
        return event.outputs
    if tier == "sentinel" and place == "device":
        return []
    below = SMALL_BYTES if tier == "boundary" else TINY_BYTES
    parameters = place == "host"
    return [one for one in event.outputs if one.bytes < below or (parameters and one.written_parameter)]


def is_over_lists(event):
    """Output i is made of operands i, i + n, ...; host/base/adapter_abi.h."""
    return event.op.startswith("aten::_foreach_")


def launches_of(event, outputs, before=0):
    """Scan launches for so many outputs of one event, which follow `before` that have waited: each takes a place in a
    launch's table, as operands do."""
    if not is_over_lists(event):
        shown = min(len(event.inputs), INPUTS_LOOKED_AT) if len(event.outputs) <= LOGGED_OUTPUTS else 0
        return -(-(before + outputs) // min(BATCH_OUTPUTS, TABLE_TENSORS - shown))
    members = min(len(event.inputs) // max(len(event.outputs), 1), INPUTS_LOOKED_AT)
    return -(-(before + outputs) // min(BATCH_OUTPUTS, TABLE_TENSORS // (1 + members)))


def operands(event, at):
    """Operands that are looked at with the output number `at`."""
    if is_over_lists(event):
        return event.inputs[at::max(len(event.outputs), 1)][:INPUTS_LOOKED_AT]
    return event.inputs[:INPUTS_LOOKED_AT] if len(event.outputs) <= LOGGED_OUTPUTS else []


def looks_of(event, outputs, before=0):
    """Those of launches_of() that a look follows: an output and its operands are too much for one block."""
    heavy = [one.bytes + sum(operand.bytes for operand in operands(event, event.outputs.index(one))) > ALONE_BYTES
             for one in outputs]
    size = -(-(before + len(outputs)) // max(launches_of(event, len(outputs), before), 1))
    placed = [False] * before + heavy
    return sum(any(placed[at:at + size]) for at in range(0, len(placed), max(size, 1)))


def launches_at_once(events, tier):
    """On a device, for the outputs of ops."""
    read_of = ((event, read(event, tier, "device")) for event in events)
    return sum(launches_of(event, len(outputs)) + looks_of(event, outputs) for event, outputs in read_of)


def launches(events, tier, gradients):
    """The same with gradients, which wait for each other where they reach a leaf, in a program with one stream.
    `gradients`: pairs of how many events came before and the tensor; then the optimizer begins."""
    count = waiting = held = 0
    storages = set()
    arriving = iter(gradients)
    following = next(arriving, None)
    for index in range(len(events) + 1):
        while following is not None and following[0] == index:
            gradient, following = following[1], next(arriving, None)
            if gradient.storage_bytes >= DEFER_BELOW:  # what waits goes along
                count += 1 + (gradient.bytes > ALONE_BYTES)
                waiting, held, storages = 0, 0, set()
                continue
            waiting, held = waiting + 1, held + gradient.storage_bytes
            storages.add(gradient.storage)
            if waiting == BATCH_OUTPUTS or held >= HELD_BYTES or following is None:
                count, waiting, held, storages = count + 1, 0, 0, set()
        if index == len(events):
            break
        outputs = read(events[index], tier, "device")
        if waiting and storages & events[index].written:  # note_write
            count, waiting, held, storages = count + 1, 0, 0, set()
        if outputs:
            count += launches_of(events[index], len(outputs), waiting) + looks_of(events[index], outputs, waiting)
            waiting, held, storages = 0, 0, set()
    return count + (waiting > 0)


def in_graph(trace):
    """Of a step that a CUDA graph captured: launches and bytes that take turns, those of each replay, and launches
    behind a gate; host/device/device_intake.cpp. `launches` are scans: looks go with those of large tensors."""
    turns = {"launches": 0, "bytes": 0}
    each = {"launches": 1, "bytes": 4}  # the loss
    behind = set()
    for index, event in enumerate(trace.events):
        if not event.outputs:
            continue
        always = any(one.written_parameter for one in event.outputs)
        taken = each if always else turns
        taken["launches"] += launches_of(event, len(event.outputs))
        taken["bytes"] += sum(one.bytes for one in event.outputs)
        if index < trace.root and not is_over_lists(event) and len(event.outputs) <= LOGGED_OUTPUTS:
            behind |= {one.storage for one in event.outputs if one.storage in trace.alive_at_root}
    each["launches"] += len(trace.gradients)
    each["bytes"] += sum(gradient.bytes for _, gradient in trace.gradients)
    return {"turns": turns, "each": each, "gated": -(-len(behind) // BATCH_OUTPUTS)}


def behind_gate(trace, tier):
    """Launches behind a closed gate, where backward() starts: for storages that outputs lie in which the tier left out
    and that are still there, and for parameters that the optimizer wrote in the steps before. Operands of ops whose
    results are gone are left out; there are few."""
    asked = set()
    for index, event in enumerate(trace.events):
        taken = {id(one) for one in read(event, tier, "device")}
        left_out = [one for one in event.outputs if id(one) not in taken]
        if len(event.outputs) > LOGGED_OUTPUTS or index >= trace.root:  # of long lists only parameters are kept
            left_out = [one for one in left_out if one.written_parameter]
        asked |= {one.storage for one in left_out if index >= trace.root or one.storage in trace.alive_at_root}
    return -(-len(asked) // BATCH_OUTPUTS)
