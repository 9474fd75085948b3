"""Reports of many nights, and one with all that a page can show."""
import copy

import made_reports


def rich():
    """The night of made_reports, its first finding with all that numsan has of one at times."""
    reports = made_reports.night()
    finding = reports[0]["findings"][0]
    place = finding["location"]
    steps = range(380, 413)
    finding["history"] = [{"step": step, "absmax": 3 * 1.9 ** (step - 380) if step < 410 else None} for step in steps]
    finding["inputs"][1]["exponents"] = {"first": -8, "counts": [1, 3, 9, 40, 120, 500, 1200, 1300, 700, 200, 18, 2]}
    finding["inputs"][1]["remark"] = "the operator divides by it"
    finding["excerpt"] = {"first": 28, "lines": [
        "def distance(a, b):", '    """Root of a sum of squares."""', "    assert a.shape == b.shape",
        "    return (a - b).pow(2).sum(-1).sqrt()", "", "def margin(x):", "    return x.relu()"]}
    finding["chain"] = [
        {"role": "before", "op": "aten::sum", "seq": 90001, "step": 412, "dtype": "float32", "bad": False,
         "absmax": 488.4, "absmin": 1.7e-5, "location": place,
         "history": [{"step": step, "absmax": 9 * 3.6 ** (step - 380) if step < 410 else None} for step in steps]},
        {"role": "after", "op": "aten::mul", "seq": 91236, "step": 412, "dtype": "float32", "bad": True,
         "absmax": None, "absmin": None, "location": None}]
    reports[0]["noted"]["scaler_skips"] = {"count": 3, "steps": [3, 77, 78]}
    return reports


def replaced(document, text, keep=("schema",)):
    """Every string is `text`, but those that make it a report."""
    if isinstance(document, dict):
        return {key: value if key in keep else replaced(value, text) for key, value in document.items()}
    if isinstance(document, list):
        return [replaced(value, text) for value in document]
    return text if isinstance(document, str) else document


def near_overflow(step, absmax, **changes):
    """A warning whose values come closer to the largest float16."""
    made = made_reports.finding(
        1, severity="warning", code="NS104", mechanism="OVF", kind="overflow", step=step, phase="forward",
        title="overflow: `aten::matmul` came close to the largest float16", op="aten::matmul", forward=None,
        backward_location=None, module="model.attention", help=["scale the operands first"], **changes)
    made["outputs"][0].update(dtype="float16", absmax=absmax, max=absmax, pos_inf=0, first_bad=None)
    return made


def nights():
    """Name -> reports: values that come closer to the limit night by night until they pass it; a finding that goes, one
    that comes, one that moves a line; ranks; and a night that was cut short."""
    made = {}
    magnitudes = [21000.0, 33500.0, 47000.0, 60100.0, None]
    for night in range(5):
        reports = [made_reports.example(rank=rank, world_size=2, started=f"2026-11-{16 + night:02}T02:0{rank}:00Z")
                   for rank in range(2)]
        for report in reports:
            report["findings"] = []
            report["verdict"] = "findings"
        first = reports[0]["findings"]
        if magnitudes[night] is not None:
            first.append(near_overflow(900 - 180 * night, magnitudes[night]))
        else:
            first.append(made_reports.finding(
                7, title="first infinity of this run: `aten::matmul` overflowed", step=40))
        if night in (0, 1, 3):
            moved = made_reports.finding(2, step=50 + night)
            moved["location"]["line"] += night
            first.append(moved)
            reports[1]["findings"].append(copy.deepcopy(moved))
        if night == 2:
            reports[1].update(verdict="incomplete")
            reports[1]["run"].update(ended=None, exit_status=None)
        made[f"2026-11-{16 + night:02}"] = reports
    return made


def write_nights(folder):
    for name, reports in nights().items():
        made_reports.write(folder / name, reports)
    return folder
