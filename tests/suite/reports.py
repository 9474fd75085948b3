"""Reads what a tool reported, numsan's reports and the flat lists of baselines alike, into one
flat shape."""
import json
import pathlib
import re

SEVERITIES = ("none", "info", "warning", "error")
OVERLOAD = re.compile(r"^([a-z0-9_]+)(?:::|\.)([a-zA-Z0-9_]+)(?:\..*)?$")


def plain_op(name):
    """`aten::log.out`, `aten.log.default` and `aten::log` are all aten::log."""
    found = OVERLOAD.match(name or "")
    return f"{found[1]}::{found[2]}" if found else name or None


def ranking_of(finding):
    """[[category, confidence or None], ...], best first, of a finding in either shape."""
    category = finding.get("category") or []
    ranked = list(category) if isinstance(category, list) else [category]
    ranked += finding.get("alternatives") or []
    result = []
    for one in ranked:
        if isinstance(one, str):
            result.append([one, None])
        else:
            result.append([one["id"], one.get("confidence")])
    return result


def line_in(program, finding):
    """The finding's line, where that is one of the program; else the program's line that called the library which the
    finding names; None where there is neither."""
    for place in (finding.get("location") or finding, finding.get("user_location") or {}):
        file, line = place.get("file"), place.get("line")
        if line is not None and (file is None or pathlib.Path(file).name == pathlib.Path(program).name):
            return line
    return None


def flat(finding, program):
    """One finding as the scorer wants it."""
    return {"severity": finding.get("severity", "error"), "op": plain_op(finding.get("op")),
            "phase": finding.get("phase"), "kind": finding.get("kind"), "line": line_in(program, finding),
            "step": finding.get("step"), "mechanism": finding.get("mechanism"),
            "rank": finding.get("rank"), "ranking": ranking_of(finding),
            "into": (finding.get("escape") or {}).get("into"), "weighed": finding.get("weighed", []),
            "fixes": sorted({kind for kinds in finding.get("fixes", []) for kind in kinds})}


def read(paths, program):
    """(findings of all these reports, earliest first; problems with reading them, as text).

    Within a report the order is the tool's. Reports of several processes are merged by step, then
    by rank.
    """
    lists, problems = [], []
    for path in sorted(paths):
        try:
            report = json.loads(pathlib.Path(path).read_text())
            lists.append([flat(one, program) for one in report["findings"]])
        except (OSError, ValueError, KeyError, TypeError) as error:
            problems.append(f"{pathlib.Path(path).name}: {type(error).__name__}: {error}")
    return merged(lists), problems


def merged(lists):
    """Merges lists of findings, always taking the earliest head, so that no list is reordered."""
    lists, result = [list(one) for one in lists if one], []
    while lists:
        best = min(lists, key=lambda one: (one[0]["step"] or 0, one[0]["rank"] or 0))
        result.append(best.pop(0))
        lists = [one for one in lists if one]
    return result
