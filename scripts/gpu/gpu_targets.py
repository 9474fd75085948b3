"""The targets of gpu_targets.json beside what was measured: of each the figure that is furthest from it, and whose it
is."""
import json
import pathlib

TARGETS = pathlib.Path(__file__).resolve().parent / "gpu_targets.json"


def plain_rows(data):
    """Scans of dense, finite float32, one tensor a launch."""
    for row in data.get("scan", {}).get("rates", []):
        if (row["type"], row["batch"], row.get("layout", "dense"), row.get("values", "finite")) == (
                "float32", 1, "dense", "finite"):
            yield row


def in_range(row, only):
    return only.get("from", 0) <= row["bytes"] <= only.get("to", row["bytes"])


def scan_of_copy(data, only):
    for row in plain_rows(data):
        if in_range(row, only):
            yield f"{row['bytes'] / (1 << 20):g} MB", row["subjects"]["scan"]["of_copy"]["median"]


def scan_microseconds(data, only):
    for row in plain_rows(data):
        if in_range(row, only):
            yield f"{row['bytes'] / (1 << 20):g} MB", row["subjects"]["scan"]["microseconds"]["median"]


def launches_a_batch(data, only):
    for row in data.get("scan", {}).get("rates", []):
        if "launches_a_batch" in row and in_range(row, only):
            yield f"{row['batch']} tensors of {row['bytes']} bytes", row["launches_a_batch"]


def configurations(data, only):
    """(name of work and configuration, what was measured)."""
    for work in data.get("steps", {}).get("works", []):
        if work["work"] in only.get("not", []) or work["work"] not in only.get("works", [work["work"]]):
            continue
        for name, one in work["configurations"].items():
            if name in only["configurations"]:
                yield f"{work['work']} {name}", one


def step_percent(data, only):
    for name, one in configurations(data, only):
        if "microseconds_a_node" not in one:
            yield name, 100 * (one["of_bare"]["median"] - 1)


def node_microseconds(data, only):
    for name, one in configurations(data, only):
        if "microseconds_a_node" in one:
            yield name, one["microseconds_a_node"]["median"]


def device_megabytes(data, only):
    figure = data.get("attach", {}).get("memory", {}).get("figure")
    if figure is not None:
        yield "a small training", figure


def host_microseconds(data, only):
    for name, nanoseconds in data.get("tests", {}).get("host", {}).items():
        if name in only["rows"]:
            yield name, nanoseconds / 1e3


FIGURES = {one.__name__: one for one in (scan_of_copy, scan_microseconds, launches_a_batch, step_percent,
                                         node_microseconds, device_megabytes, host_microseconds)}


def held(data):
    """(target, limit as text, worst figure as text, "yes", "no" or "not measured") of each target, by parts' data."""
    for one in json.loads(TARGETS.read_text())["targets"]:
        least = one.get("least", False)
        measured = list(FIGURES[one["figure"]](data, one.get("only", {})))
        limit = f"{'at least' if least else 'at most'} {one['limit']:g}"
        if not measured:
            yield one["target"], limit, "", "not measured"
            continue
        whose, worst = (min if least else max)(measured, key=lambda found: found[1])
        good = worst >= one["limit"] if least else worst <= one["limit"]
        yield one["target"], limit, f"{worst:.3g} ({whose})", "yes" if good else "no"
