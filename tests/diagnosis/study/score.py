"""Scores what `numsan diagnose` says of the study's runs, with the rules of today, beside other tools' rules.

A seeded fault counts where it is proven to do harm (harm.py). Its first watched run is scored. A fault that numsan has
no code for is missed by whatever numsan says but counts as found where it says something.
"""
import json
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import harm
import seeding
import study_runs
from rivals import RIVALS

sys.path.insert(0, str(study_runs.TESTS / "suite"))
from intervals import calibration_error, macro_f1, wilson  # noqa: E402

# Of 0.5 to 32, that with the least log loss where each open base is judged by the others (decision 0051).
PRIOR_RUNS = 8
HALVES = {"open": seeding.OPEN, "held out": seeding.HELD}


class Case(NamedTuple):
    """A run and what is right about it. `truth` is a code, a kind of fault that has none, or None: healthy."""
    base: str
    kind: str | None
    truth: str | None
    lines: frozenset
    signals: dict


class Answer(NamedTuple):
    """A fault that a tool says: its code or kind, confidence and line, None where it has none."""
    fault: str
    confidence: float | None = None
    line: int | None = None
    by: str = "rule"  # or "model"


def diagnosed(report):
    """numsan's answers to a report, with the rules of today."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(report, file)
        file.flush()
        done = subprocess.run([study_runs.run_numsan.COMMAND, "diagnose", file.name, "--format", "json"],
                              capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"numsan diagnose: {done.returncode} {done.stderr}")
    return [Answer(one["code"], one["confidence"], (one["location"] or {}).get("line"), one["by"])
            for one in json.loads(done.stdout)]


def cases_of(programs, runs):
    """(cases, how each seeded program left the count): proven, harmless, failed or not run."""
    figures, cases, fates = {}, [], {}
    for program in sorted(programs, key=lambda one: one.kind is not None):
        def kept(way, program=program):
            return list(iter_kept(runs, program, way))

        bare, watched = kept("bare"), kept("watched")
        truth = program.code or program.kind
        if program.kind is None:
            untrained = [run["figure"] for run in kept("untrained")]
            if not bare or not untrained or any(run["figure"] is None for run in bare):
                raise SystemExit(f"{program.name}: no figures of it were kept, or it failed; run without --score")
            figures[program.base] = [run["figure"] for run in bare], untrained
            cases += [Case(program.base, None, None, frozenset(), run["report"]) for run in watched]
        elif len(bare) < 3 or not watched:
            fates[program.name] = ("not run", None)
        elif any(run["status"] for run in bare) or watched[0]["report"] is None:
            fates[program.name] = ("failed", next((run["error"] for run in bare if run["status"]), "no report"))
        else:
            healthy, untrained = figures[program.base]
            done = harm.of(healthy, [run["figure"] for run in bare], untrained)
            fates[program.name] = ("proven" if done.proven else "harmless", done)
            if done.proven:
                cases.append(Case(program.base, program.kind, truth, program.lines, watched[0]["report"]))
    return cases, fates


def iter_kept(runs, program, way):
    """The study's runs, up to the first that was not made. Others may be kept beside them."""
    for seed in study_runs.seeds_of(program, way):
        if (run := runs.kept(program, way, seed)) is None:
            return
        yield run


def share(flags):
    flags = list(flags)
    low, high = wilson(sum(flags), len(flags))
    return {"share": sum(flags) / len(flags) if flags else None, "of": len(flags), "low": low, "high": high}


def metrics(cases, answers):
    """The figures of one tool. `answers` has a list for each case, likeliest first."""
    seeded = [(case, said) for case, said in zip(cases, answers) if case.kind]
    healthy = [said for case, said in zip(cases, answers) if not case.kind]
    coded = [(case, said) for case, said in seeded if case.truth.startswith("ND")]
    right = [(case, said) for case, said in seeded if first(said) == case.truth]
    judged = [(said[0].confidence, case.kind is not None and first(said) == case.truth)
              for case, said in zip(cases, answers) if said and said[0].confidence is not None]
    lines = [said[0].line in case.lines for case, said in right if said[0].line is not None]
    return {
        "found": share(bool(said) for _, said in seeded),
        "false_alarms": share(bool(said) for said in healthy),
        "top1": share(first(said) == case.truth for case, said in seeded),
        "top1_coded": share(first(said) == case.truth for case, said in coded),
        "top2": share(case.truth in [one.fault for one in said[:2]] for case, said in seeded),
        "exact": share({one.fault for one in said} == {case.truth} for case, said in seeded),
        "line": share(lines),
        "macro_f1": macro_f1([(case.truth, first(said)) for case, said in seeded]) if seeded else None,
        "calibration": calibration_error(judged) if judged else None,
        "answers": len(judged),
    }


def first(said):
    return said[0].fault if said else None


def most_common(cases):
    """The best constant answer: the fault that most seeded programs of the open half have."""
    counts = Counter(case.truth for case in cases if case.kind and case.base in seeding.OPEN)
    return counts.most_common(1)[0][0] if counts else None


def study(programs, runs):
    """Cases, fates, and the answers of each tool to each case."""
    cases, fates = cases_of(programs, runs)
    with ThreadPoolExecutor(2) as pool:
        tools = {"numsan": list(pool.map(diagnosed, (case.signals for case in cases)))}
    tools["its rules alone"] = [[one for one in said if one.by == "rule"] for said in tools["numsan"]]
    constant = most_common(cases)
    tools[f"always {constant}"] = [[Answer(constant)] for _ in cases]
    for name, rule in RIVALS.items():
        tools[name] = [[Answer(fault) for fault in rule(case.signals["diagnosis"])] for case in cases]
    return {"cases": cases, "fates": fates, "tools": tools}


def of_bases(result, tool, bases):
    """The metrics of a tool over the cases of some bases."""
    chosen = [place for place, case in enumerate(result["cases"]) if case.base in bases]
    return metrics([result["cases"][place] for place in chosen], [result["tools"][tool][place] for place in chosen])


def figures(result):
    """{half: {tool: metrics}}, what targets are held against."""
    return {half: {tool: of_bases(result, tool, bases) for tool in result["tools"]} for half, bases in HALVES.items()}


COLUMNS = {"found": "found", "false_alarms": "false alarms", "top1": "top 1",
           "top1_coded": "top 1, of those with a code", "top2": "top 2", "exact": "exact set",
           "line": "line", "macro_f1": "macro F1", "calibration": "ECE"}


def shown(value):
    if not isinstance(value, dict):
        return "-" if value is None else f"{value:.2f}"
    share, of = value["share"], value["of"]
    return "-" if share is None else f"{share:.2f} ({round(share * of)}/{of})"


def table(title, rows):
    lines = [f"| {' | '.join([title, *COLUMNS.values()])} |", "| --- " * (len(COLUMNS) + 1) + "|"]
    cells = [[name, *(shown(row[key]) for key in COLUMNS)] for name, row in rows.items()]
    return lines + [f"| {' | '.join(row)} |" for row in cells]


def told(result):
    """The score as Markdown."""
    lines = []
    for half, tools in figures(result).items():
        lines += table(half, tools) + [""]
    bases = sorted({case.base for case in result["cases"]})
    lines += table("numsan, by base", {base: of_bases(result, "numsan", [base]) for base in bases}) + [""]
    lines += by_fault(result) + [""]
    lines += ["| code | right | said, open half | confidence |", "| --- | --- | --- | --- |"]
    lines += [f"| {code} | {right} | {said} | {confidence:.2f} |"
              for code, (right, said, confidence) in confidences(result).items()] + [""]
    fates = Counter(fate for fate, _ in result["fates"].values())
    counted = ", ".join(f"{count} {fate}" for fate, count in fates.items())
    lines.append(f"{len(result['fates'])} seeded programs: {counted}")
    for name, (fate, why) in sorted(result["fates"].items()):
        if fate == "harmless":
            figures_of = f"d {why.effect:.2f}, p {why.probability:.3f}, lost {why.lost:.2f}"
            lines.append(f"not proven harmful: {name} ({figures_of})")
        elif fate != "proven":
            lines.append(f"{fate}: {name} {why or ''}")
    return lines


def by_fault(result):
    """What numsan says first of each kind of fault, of the open half; of the other only how often it is right."""
    lines = ["| fault | held out, right | open, right | open, what is said first |", "| --- | --- | --- | --- |"]
    answers = list(zip(result["cases"], result["tools"]["numsan"]))
    for kind in sorted({case.kind for case in result["cases"] if case.kind}):
        halves = [[(case, said) for case, said in answers if case.kind == kind and case.base in bases]
                  for bases in (seeding.HELD, seeding.OPEN)]
        right = [f"{sum(first(said) == case.truth for case, said in half)}/{len(half)}" for half in halves]
        said = Counter(first(said) or "nothing" for _, said in halves[1])
        lines.append(f"| {kind} | {right[0]} | {right[1]} | "
                     + ", ".join(f"{name} {count}" for name, count in said.most_common()) + " |")
    return lines


def confidences(result):
    """{code: (right, said, confidence)} over the open half: in how many of the runs of which a rule says a fault it is
    the one that was seeded, smoothed by PRIOR_RUNS that are right as often as all answers are. A healthy run of which
    something is said counts. The model has confidences of its own."""
    counts = {}
    for case, said in zip(result["cases"], result["tools"]["numsan"]):
        for fault in {one.fault for one in said if one.by == "rule"} if case.base in seeding.OPEN else ():
            right, total = counts.get(fault, (0, 0))
            counts[fault] = right + (fault == case.truth), total + 1
    of_all = sum(right for right, _ in counts.values()) / max(1, sum(said for _, said in counts.values()))
    return {code: (right, said, (right + PRIOR_RUNS * of_all) / (said + PRIOR_RUNS))
            for code, (right, said) in sorted(counts.items())}


def missed(measured, targets):
    """One line for each target that is missed: {half: {figure: {at_least or at_most: bound}}}, of numsan."""
    lines = []
    for half, bounds in targets.items():
        for key, bound in bounds.items():
            value = measured[half]["numsan"][key]
            value = value["share"] if isinstance(value, dict) else value
            if value is None:
                lines.append(f"{half}, {COLUMNS[key]}: nothing was measured")
                continue
            low, high = bound.get("at_least", value), bound.get("at_most", value)
            if not low <= value <= high:
                lines.append(f"{half}, {COLUMNS[key]}: {value:.3f}, wanted {bound}")
    return lines
