"""Scores findings against the manifest: one outcome a program, then shares with intervals over all
of them."""
from intervals import calibration_error, macro_f1, wilson
from reports import SEVERITIES

LOUDNESS = {name: rank for rank, name in enumerate(SEVERITIES)}
# key -> (title, which programs are counted); an outcome of None is not counted either
SHARES = {
    "recall_nonfinite": ("recall, nan and inf", lambda entry: signal_of(entry) == "nonfinite"),
    "recall_underflow": ("recall, underflow and muted",
                         lambda entry: signal_of(entry) != "nonfinite"),
    "first_op": ("first op (op and line)", None),
    "op": ("op alone", None),
    "line_strict": ("line, strict", None),
    "line_lenient": ("line, lenient", None),
    "phase": ("phase", None),
    "step": ("step", None),
    "mechanism": ("mechanism", None),
    "category_top1": ("category, top 1", None),
    "category_top1_lenient": ("category, top 1 lenient", None),
    "category_top2": ("category, top 2", None),
    "help": ("help names the fix", lambda entry: "fix_kind" in entry),
}


def signal_of(entry):
    """What there is to detect: nonfinite, underflow (only zeros are born) or muted (an inf that
    becomes zeros)."""
    if set(entry["kind"]) == {"zero"}:
        return "underflow"
    muted = entry["family"] == "muted" or (
        entry["severity"] == "warning" and entry["loss_stays_finite"]
        and entry["mechanism"] == "OVF" and "nan" not in entry["kind"])
    return "muted" if muted else "nonfinite"


def first_finding(entry, findings):
    """The finding that is scored: the first error of an error program, else the first; precursors
    are passed over."""
    real = [one for one in findings if one["line"] not in entry["precursor_lines"]] or findings
    if entry["severity"] == "error":
        real = [one for one in real if one["severity"] == "error"] or real
    return real[0] if real else None


def program_outcome(entry, findings):
    """What a tool got right about one bug program."""
    loud = [one for one in findings if LOUDNESS[one["severity"]] >= LOUDNESS[entry["severity"]]]
    first = first_finding(entry, findings)
    outcome = {"id": entry["id"], "found": bool(loud), "first": first, "detected": bool(loud),
               "on_intended": sorted({one["line"] for one in findings
                                      if one["line"] in entry["intended_lines"]})}
    got = first or {"op": None, "line": None, "phase": None, "step": None, "mechanism": None,
                    "ranking": [], "fixes": []}
    ranked = [name for name, _ in got["ranking"]]
    top = ranked[0] if ranked else None
    op, lenient = got["op"] in entry["birth_op"], got["line"] in entry["lines_ok"]
    known_step = entry["first_step"] is not None
    names_fix = entry.get("fix_kind") in set(got.get("fixes", ())) - {"other"}
    outcome.update(
        recall_nonfinite=bool(loud), recall_underflow=bool(loud), first_op=op and lenient, op=op,
        line_strict=got["line"] == entry["line"], line_lenient=lenient,
        phase=got["phase"] == entry["phase"],
        step=got["step"] == entry["first_step"] if known_step else None,
        mechanism=got["mechanism"] == entry["mechanism"],
        category_top1=top == entry["category"],
        category_top1_lenient=top == entry["category"] or top in entry["category_alt"],
        category_top2=entry["category"] in ranked[:2],
        help=lenient and names_fix if "fix_kind" in entry else None,
        answer=None if top == "U" else top,
        confidence=got["ranking"][0][1] if ranked and top != "U" else None)
    return outcome


def control_outcome(entry, findings):
    """Whether a tool kept as quiet about a healthy program as it should."""
    loud = [one for one in findings
            if LOUDNESS[one["severity"]] > LOUDNESS[entry["max_severity"]]]
    return {"id": entry["id"], "false_alarm": bool(loud), "first": loud[0] if loud else None}


def share(outcomes):
    """A share with its Wilson interval, of a list of true and false."""
    good, total = sum(outcomes), len(outcomes)
    low, high = wilson(good, total)
    return {"good": good, "of": total, "share": good / total if total else None,
            "low": low, "high": high}


def score(manifest, runs):
    """All metrics of a tool. `runs` maps a program's id to {"findings": [...], ...}; others are
    left out."""
    bugs = [(entry, program_outcome(entry, runs[entry["id"]]["findings"]))
            for entry in manifest["programs"] if entry["id"] in runs]
    healthy = [control_outcome(entry, runs[entry["id"]]["findings"])
               for entry in manifest["controls"] if entry["id"] in runs]
    metrics = {}
    for key, (_, counted) in SHARES.items():
        metrics[key] = share([outcome[key] for entry, outcome in bugs
                              if outcome[key] is not None and (counted is None or counted(entry))])
    metrics["false_alarms"] = share([outcome["false_alarm"] for outcome in healthy])
    metrics["intended_lines"] = sum(len(outcome["on_intended"]) for _, outcome in bugs)
    metrics["macro_f1"] = macro_f1([(entry["category"], outcome["answer"])
                                    for entry, outcome in bugs])
    answers = [(outcome["confidence"], outcome["category_top1"]) for _, outcome in bugs
               if outcome["confidence"] is not None]
    metrics["calibration_error"] = calibration_error(answers) if answers else None
    metrics["calibration_answers"] = len(answers)
    metrics["disturbed"] = sum(bool(disturbance(runs[one["id"]])) for one in
                               [outcome for _, outcome in bugs] + healthy)
    return {"metrics": metrics, "programs": [outcome for _, outcome in bugs],
            "controls": healthy}


def disturbance(run):
    """How a run differs from a bare one, "" where it does not: the tool must not be noticed by the
    program."""
    parts = []
    if run.get("exit_status") != run.get("bare_exit_status"):
        parts.append(f"exit status {run.get('exit_status')}, bare {run.get('bare_exit_status')}")
    if not run.get("same_output", True):
        parts.append("stdout differs from a bare run")
    return ", ".join(parts + run.get("problems", []))
