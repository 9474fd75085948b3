"""Renders scores as text: one tool's table, what differs per program, two tools compared, many
tools in markdown."""
import math

from intervals import paired_bootstrap
from manifest import of_families
from scoring import SHARES, disturbance, score

PLAIN = {"intended_lines": "findings on intended lines", "macro_f1": "category, macro F1",
         "calibration_error": "expected calibration error",
         "disturbed": "programs disturbed"}
TITLES = {**{key: title for key, (title, _) in SHARES.items()},
          "false_alarms": "false alarms on controls", **PLAIN}


def value_text(metric, short=False):
    """A share as `0.93 (76/82, 0.85..0.97)`, a plain number as it is."""
    if metric is None:
        return "-"
    if not isinstance(metric, dict):
        return str(metric) if isinstance(metric, int) else f"{metric:.3f}"
    if not metric["of"]:
        return "-"
    if short:
        return f"{metric['share']:.2f} ({metric['low']:.2f}..{metric['high']:.2f})"
    return (f"{metric['share']:.3f}  {metric['good']}/{metric['of']}  "
            f"{metric['low']:.3f}..{metric['high']:.3f}")


def score_table(metrics):
    """One metric a line."""
    width = max(map(len, TITLES.values()))
    return "\n".join(f"{title:{width}}  {value_text(metrics[key])}"
                     for key, title in TITLES.items())


def cost_line(runs):
    """The time with the tool as a multiple of the time without; single runs, so no benchmark."""
    ratios = [run["seconds"] / run["bare_seconds"] for run in runs.values() if run["bare_seconds"]]
    if not ratios:
        return "no times"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"time with the tool / bare: {mean:.2f} (geometric mean of {len(ratios)} single runs)"


def shown(finding):
    if finding is None:
        return "nothing"
    category = finding["ranking"][0][0] if finding["ranking"] else "?"
    return (f"{finding['severity']} {finding['op']} line {finding['line']} {finding['phase']} "
            f"step {finding['step']} {finding['mechanism']} {category}"
            f"{fixes_text(finding.get('fixes', []))}")


def fixes_text(kinds):
    return f", help: {' '.join(kinds)}" if kinds else ""


def wanted(entry):
    step = "any" if entry["first_step"] is None else entry["first_step"]
    return (f"{entry['severity']} {'|'.join(entry['birth_op'])} "
            f"line {'|'.join(map(str, entry['lines_ok']))} {entry['phase']} step {step} "
            f"{entry['mechanism']} {'|'.join([entry['category'], *entry['category_alt']])}"
            f"{fixes_text([entry['fix_kind']] if 'fix_kind' in entry else [])}")


def wrong_parts(outcome):
    """The names of what is wrong with a program's outcome, worst first."""
    if not outcome["detected"]:
        return ["missed"]
    names = (("op", "op"), ("line_lenient", "line"), ("phase", "phase"), ("step", "step"),
             ("mechanism", "mechanism"), ("category_top1_lenient", "category"), ("help", "help"))
    return [name for key, name in names if outcome[key] is False]


def differences(manifest, scored, runs):
    """What a tool got wrong, program by program, expected and got."""
    entries = {entry["id"]: entry for entry in manifest["programs"] + manifest["controls"]}
    for outcome in scored["programs"] + scored["controls"]:
        entry, run = entries[outcome["id"]], runs[outcome["id"]]
        if "false_alarm" in outcome:
            if outcome["false_alarm"]:
                yield (f"{entry['file']}: false alarm (at most {entry['max_severity']})\n"
                       f"    got      {shown(outcome['first'])}")
        elif wrong_parts(outcome):
            yield (f"{entry['file']}: {', '.join(wrong_parts(outcome))}\n"
                   f"    expected {wanted(entry)}\n    got      {shown(outcome['first'])}")
        if outcome.get("on_intended"):
            yield f"{entry['file']}: findings on intended lines {outcome['on_intended']}"
        if disturbance(run):
            yield f"{entry['file']}: {disturbance(run)}"


def by_families(manifest, runs):
    """Lines: what differs from the labels, and the scores. Of a manifest of threads the open and the frozen families
    apart, and of frozen ones nothing but the scores."""
    split = any("frozen" in entry for entries in manifest.values() for entry in entries)
    for families in ("open", "frozen") if split else ("all",):
        part = of_families(manifest, families)
        scored = score(part, runs)
        if not scored["programs"] and not scored["controls"]:
            continue
        if families != "frozen":
            yield from differences(part, scored, runs)
        yield ""
        if split:
            yield f"{families} families: {len(scored['programs'])} bug programs, {len(scored['controls'])} healthy ones"
        yield score_table(scored["metrics"])


def outcome_flags(outcome):
    """{metric: bool} of one program or control, what can be compared between two tools."""
    if "false_alarm" in outcome:
        return {"false_alarms": outcome["false_alarm"]}
    return {key: outcome[key] for key in SHARES if outcome[key] is not None}


def comparison(manifest, first, second):
    """Lines that compare two scored tools: a paired bootstrap for each metric, then the programs
    that changed."""
    names = {entry["id"]: entry["file"] for entry in manifest["programs"] + manifest["controls"]}
    signals = {entry["id"]: entry for entry in manifest["programs"]}
    sides = [{one["id"]: outcome_flags(one) for one in scored["programs"] + scored["controls"]}
             for scored in (first, second)]
    common = [name for name in sides[0] if name in sides[1]]
    yield f"{'metric':28}  {'A':>6} {'B':>6}   B - A, 95 % interval by paired bootstrap"
    for key, title in TITLES.items():
        counted = SHARES.get(key, (None, None))[1]
        pairs = [(sides[0][name][key], sides[1][name][key]) for name in common
                 if key in sides[0][name] and (counted is None or counted(signals[name]))]
        if pairs:
            gap, (low, high) = paired_bootstrap(pairs)
            means = [sum(pair[side] for pair in pairs) / len(pairs) for side in (0, 1)]
            yield (f"{title:28}  {means[0]:6.3f} {means[1]:6.3f}   "
                   f"{gap:+.3f}  {low:+.3f}..{high:+.3f}")
    for name in common:
        better = {key: value != (key == "false_alarms") for key, value in sides[1][name].items()}
        changed = [f"{TITLES[key]} {'gained' if better[key] else 'lost'}"
                   for key, value in sides[0][name].items() if sides[1][name].get(key) != value
                   and not (key.startswith("recall") and not SHARES[key][1](signals[name]))]
        if changed:
            yield f"{names[name]}: {', '.join(changed)}"
    for side, other, letter in ((0, 1, "A"), (1, 0, "B")):
        alone = [name for name in sides[side] if name not in sides[other]]
        if alone:
            yield f"only in {letter}: {', '.join(alone)}"


def results_table(scored_tools):
    """One markdown table of several tools: {name: metrics}."""
    keys = [key for key in TITLES if key != "op"]
    lines = ["| | " + " | ".join(scored_tools) + " |", "| --- |" + " --- |" * len(scored_tools)]
    for key in keys:
        cells = [value_text(metrics[key], short=True) for metrics in scored_tools.values()]
        lines.append(f"| {TITLES[key]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
