"""What `numsan replay DUMP` says: as text for people and as JSON."""
import json

import comparison
import def_tables
import torch
from verdicts import are, dtype_name, number, of_places, places

SCHEMA = "numsan.replay/1"
TOLD = ("KERN", "PREC", "RACE", "HW")  # mechanisms that a replay can tell
WIDTH = 24


def clean(text, most=400):
    """Text of a dump on one line, without what a terminal would obey."""
    text = "".join(c if c.isprintable() else " " for c in str(text))
    return text if len(text) <= most else text[:most - 3] + "..."


def level_text(run, bad_count):
    """How a run agrees with the program's result, as a phrase."""
    agreement = run.agreement
    if agreement.why:
        return agreement.why
    if agreement.bits:
        return "the same, bit by bit"
    if not agreement.places:
        parts = []
        if agreement.only_reference:
            healed = agreement.only_reference
            parts.append(f"{of_places(healed, bad_count)} {are(healed)} finite here")
        if agreement.only_run:
            parts.append(f"{places(agreement.only_run)} not finite here alone")
        return "disagrees: " + ", ".join(parts)
    if agreement.close and not agreement.difference:
        return "the same values"
    if agreement.close:
        return f"the same within rounding, by up to {number(agreement.difference)}"
    return f"disagrees: {places(agreement.differing)}, by up to {number(agreement.difference)}"


def run_line(run, bad_count):
    name = run.about
    if run.results is None:
        return name, f"not run: {clean(run.why)}"
    if run.name == "repeats":
        times = f"repeated {run.count} time" + ("" if run.count == 1 else "s")
        if not run.differing:
            return times, "the same, bit by bit"
        return times, f"{run.differing} differ from the first run, by up to {number(run.agreement.difference)}"
    return name, level_text(run, bad_count)


def tensor_text(values):
    return f"{dtype_name(values.dtype)}[{', '.join(map(str, values.shape))}]"


def first_bad(results):
    """[result, index...] of the first value that is not finite, None where all are."""
    for i, values in enumerate(results):
        bad = comparison.is_bad(values).nonzero()
        if len(bad):
            return [i, *bad[0].tolist()]
    return None


def results_text(results):
    if not results:
        return "no tensor"
    parts = [tensor_text(values) for values in results[:3]] + (["..."] if len(results) > 3 else [])
    found, first = comparison.counts(results), first_bad(results)
    text = f"{', '.join(parts)}  nan {found['nan']}  +inf {found['pos_inf']}  -inf {found['neg_inf']}"
    return text if first is None else f"{text}  first at {first[1:]}" + (f" of result {first[0]}" if first[0] else "")


def inputs_text(operands):
    return ", ".join(f"{clean(argument.name or argument.tensor)} {tensor_text(operands.values(argument))}"
                     for _, argument in operands.tensor_arguments()[:6])


def text(replay, verdict, judged, script):
    """The document for people; `judged` is None without --try."""
    dump, lines = replay.dump, []
    finding = dump.finding

    def row(name, said):
        lines.append(f"  {name:<{WIDTH}}{said}")

    lines.append(f"{clean(dump.path)}: {dump.op} of {inputs_text(replay.operands) or 'no tensor'}, on {dump.device}")
    if finding.get("title"):
        row("finding", clean(f"{finding.get('code', '')} {finding['title']}".strip()))
    location = finding.get("location")
    if isinstance(location, dict) and location.get("file"):
        row("line", clean(f"{location['file']}:{location.get('line')}"))
    row("in the program", results_text(replay.dumped) if replay.dumped else "the dump has no results")
    for run in replay.runs:
        row(*run_line(run, verdict.bad_count))
    lines.append(f"{'reproduced' if verdict.reproduced else 'not reproduced'}: {verdict.outcome}")
    table = def_tables.mechanisms()
    for shown in verdict.shown:
        code, name = table[shown.mechanism]
        lines.append(f"{code} {shown.mechanism} {name}: {shown.because}")
    if not verdict.shown:
        lines.append(f"none of {', '.join(TOLD[:-1])} and {TOLD[-1]} is what this shows")
    lines += [f"note: {clean(note)}" for note in verdict.notes]
    if judged is not None:
        lines += help_text(judged)
    if script:
        lines.append(f"script: {clean(script)}")
    return "\n".join(lines) + "\n"


def help_text(judged):
    """Help that was tried and failed is not shown as help."""
    lines = []
    for line in judged:
        if line.judgement == "helps":
            lines += [f"help: {clean(line.text)}", f"    {line.said}"]
    for line in judged:
        if line.judgement == "not_tried":
            lines += [f"help, not tried: {clean(line.text)}", f"    {clean(line.said)}"]
    for line in judged:
        if line.judgement == "failed":
            lines += [f"no help here: {clean(line.text)}", f"    {line.said}"]
    if not judged:
        lines.append("the finding has no help to try")
    return lines


def json_text(replay, verdict, judged, script):
    """The document for programs; it only grows."""
    table, dump = def_tables.mechanisms(), replay.dump
    runs = []
    for run in replay.runs:
        row = {"name": run.name, "ran": run.results is not None}
        if run.results is None:
            row["why_not"] = run.why
        else:
            row.update(agrees=run.agreement.level(), largest_difference=finite(run.agreement.difference),
                       same_places=run.agreement.places, only_in_program=run.agreement.only_reference,
                       only_here=run.agreement.only_run, **comparison.counts(run.results))
        if run.name == "repeats":
            row.update(repeats=run.count, differing=run.differing)
        runs.append(row)
    document = {
        "schema": SCHEMA, "dump": dump.path, "op": str(dump.op), "device": dump.device, "ran_on": replay.device,
        "torch": {"dump": dump.torch_version, "here": torch.__version__},
        "finding": {key: dump.finding[key] for key in ("id", "code", "mechanism", "title", "op", "phase", "location")
                    if key in dump.finding},
        "result": {"in_program": replay.dumped is not None, "bad_values": verdict.bad_count,
                   "first_bad": first_bad(replay.reference), **comparison.counts(replay.reference)},
        "runs": runs, "reproduced": verdict.reproduced, "outcome": verdict.outcome,
        "mechanisms": [{"code": table[shown.mechanism][0], "mechanism": shown.mechanism, "because": shown.because}
                       for shown in verdict.shown],
        "notes": verdict.notes, "script": script or None,
        "help": None if judged is None else [
            {"text": line.text, "judgement": line.judgement, "said": line.said,
             **{name: finite(value) for name, value in line.facts.items()}} for line in judged],
    }
    return json.dumps(document, indent=1) + "\n"


def finite(value):
    """JSON has no infinity."""
    return value if not isinstance(value, float) or abs(value) != float("inf") and value == value else None
