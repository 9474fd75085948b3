#!/usr/bin/env python3
"""The figures of results.json, and the tables that docs/accuracy.md and tests/bench/RESULTS.md make of them; and the
tables of docs/categories, which thread_tables.py makes of threads.

    figures.py                  checks that the tables are what results.json says; 1 where not
    figures.py --write          rewrites the tables
    figures.py --from FOLDER    makes results.json of FOLDER/TOOL.json, one for numsan and one for
                                each baseline, as `run --out` stores them; then rewrites the tables.
                                A baseline without a file keeps its figures, if suite and versions
                                are still the same
    figures.py --threads RUN FIXED  makes threads/results.json of what `run --set threads --out` and
                                the same with --fixed stored; then rewrites the tables

A table stands between `<!-- table NAME -->` and `<!-- end table -->`; exit status 2 where one has no
place. Nothing is run and no score is computed here but from stored results.
"""
import argparse
import collections
import datetime
import difflib
import json
import os
import pathlib
import re
import sys

import calibration
import manifest as manifests
import running
import scoring
import thread_tables
from intervals import wilson
from markers import CATEGORIES

RESULTS = running.SUITE / "results.json"
THREADS = running.SUITE / "threads" / "results.json"
ACCURACY, BENCH = "docs/accuracy.md", "tests/bench/RESULTS.md"
# heading, metric, what a tool must give for the metric to mean anything (None: nothing)
SHORT = (("recall", "recall", None), ("false alarms", "false_alarms", None),
         ("line, strict", "line_strict", "line"), ("line, lenient", "line_lenient", "line"),
         ("phase", "phase", "phase"), ("category", "category_top1", "category"))
LONG = (("recall", "recall", None), ("false alarms", "false_alarms", None),
        ("on intended lines", "intended_lines", "line"), ("first op", "first_op", "op"),
        ("line, strict", "line_strict", "line"), ("line, lenient", "line_lenient", "line"),
        ("phase", "phase", "phase"), ("step", "step", "step"),
        ("mechanism", "mechanism", "mechanism"), ("category, top 1", "category_top1", "category"),
        ("category, lenient", "category_top1_lenient", "category"),
        ("category, top 2", "category_top2", "category"),
        ("macro F1", "macro_f1", "category"), ("disturbed", "disturbed", None))


def given(runs):
    """What a tool tells at all: an op, line, phase, step, mechanism or category in any finding."""
    findings = [one for run in runs.values() for one in run["findings"]]
    tells = {key for key in ("line", "phase", "step", "mechanism")
             if any(one[key] is not None for one in findings)}
    if any("::" in (one["op"] or "") for one in findings):
        tells.add("op")
    if any(name != "U" for one in findings for name, _ in one["ranking"][:1]):
        tells.add("category")
    return sorted(tells)


def compact(metrics):
    """Shares as [good, of], numbers as they are, and one recall over all bug programs."""
    kept = {key: [value["good"], value["of"]] if isinstance(value, dict) else value
            for key, value in metrics.items()}
    parts = [kept.pop("recall_nonfinite"), kept.pop("recall_underflow")]
    return {"recall": [sum(pair) for pair in zip(*parts)], **kept}


def per_category(manifest, scored):
    """{category: counts}: programs of it, answers that name it, how many of these are right or are
    an accepted alternative."""
    truth = {entry["id"]: entry["category"] for entry in manifest["programs"]}
    counts = {}
    for name in CATEGORIES:
        answers = [one for one in scored["programs"] if one["answer"] == name]
        given_as = [one["answer"] or "U" for one in scored["programs"] if truth[one["id"]] == name]
        counts[name] = {"programs": len(given_as), "answers": len(answers),
                        "right": sum(one["category_top1"] for one in answers),
                        "accepted": sum(one["category_top1_lenient"] for one in answers),
                        "answered": dict(sorted(collections.Counter(given_as).items()))}
    return counts


def machine():
    """The processor by name, its cores, and whether it is a virtual one."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"model name\s*: (.*)", text)
    virtual = ", virtual machine" if re.search(r"^flags.*\bhypervisor\b", text, re.M) else ""
    return f"{name[1].strip() if name else 'processor'}, {os.cpu_count()} cores{virtual}"


def kept_figures(manifest, stored, before):
    """Figures in `before` of the baselines that `stored` lacks, where they are of this suite and
    these versions: no change of numsan's changes them."""
    ours = stored.get("numsan", {}).get("versions", "")
    same = (before and ours.startswith(before["python"] + " ") and ours.split()[-1:] == [before["torch"]]
            and before["programs"] == len(manifest["programs"])
            and before["controls"] == len(manifest["controls"]))
    return {name: figures for name, figures in before["tools"].items()
            if name != "numsan" and name not in stored} if same else {}


def collected(manifest, stored, before=None):
    """results.json of {tool: stored result}, whole runs; what lacks is taken from `before`."""
    kept = kept_figures(manifest, stored, before)
    missing = [name for name in ("numsan", *running.baselines()) if name not in {**stored, **kept}]
    entries = {entry["id"] for entry in manifest["programs"] + manifest["controls"]}
    parts = [name for name, result in stored.items() if set(result["runs"]) != entries]
    versions = {result["versions"] for result in stored.values()}
    if missing or parts or len(versions) > 1:
        raise SystemExit(f"figures: no result of {missing}, not of the whole suite {parts}, "
                         f"versions {versions}")
    scored = {name: scoring.score(manifest, stored[name]["runs"])
              for name in ("numsan", *running.baselines()) if name in stored}
    tools = {name: kept.get(name) or {"gives": given(stored[name]["runs"]),
                                      **compact(scored[name]["metrics"])}
             for name in ("numsan", *running.baselines())}
    answers = calibration.answers_of(manifest, scored["numsan"])
    found = re.search(r"^(\S+).* (\S+)$", versions.pop(), re.S)
    return {"date": datetime.date.today().isoformat(), "machine": machine(),
            "python": found[1], "torch": found[2], "device": stored["numsan"]["device"],
            "programs": len(manifest["programs"]), "controls": len(manifest["controls"]),
            "tools": tools,
            "categories": per_category(manifest, scored["numsan"]),
            "calibration": calibration.cross_validated(answers)}


def collected_threads(manifest, stored, mended):
    """threads/results.json of numsan's runs of the programs and of their mended selves: of open and frozen families
    apart, and of no program by itself."""
    whole = {entry["id"] for entries in manifest.values() for entry in entries}
    healthy = manifests.mended(manifest)
    if set(stored["runs"]) != whole or set(mended["runs"]) != {entry["id"] for entry in healthy["controls"]}:
        raise SystemExit("figures: not runs of all programs of threads, or not of all with --fixed")
    families = {}
    for name in ("open", "frozen"):
        part = manifests.of_families(manifest, name)
        quiet = scoring.score(manifests.of_families(healthy, name), mended["runs"])["metrics"]
        families[name] = {**{key: len(entries) for key, entries in part.items()},
                          **compact(scoring.score(part, stored["runs"])["metrics"]),
                          "mended_alarms": compact(quiet)["false_alarms"], "mended_disturbed": quiet["disturbed"]}
    found = re.search(r"^(\S+).* (\S+)$", stored["versions"], re.S)
    return {"date": datetime.date.today().isoformat(), "machine": machine(), "python": found[1], "torch": found[2],
            "device": stored["device"], "families": families}


def threads_table(_):
    """One row a metric, one column for the open and one for the frozen families."""
    if not THREADS.exists():
        yield "numsan has not been run on all of them yet."
        return
    results = json.loads(THREADS.read_text())
    parts = results["families"]
    columns = (*LONG[:-1], ("help names the fix", "help", None),
               ("expected calibration error", "calibration_error", None),
               ("false alarms, mended programs", "mended_alarms", None))

    def cell(value):
        if isinstance(value, list):
            return f"{share_text(*value)} ({value[0]}/{value[1]})"
        return str(value) if isinstance(value, int) else "-" if value is None else f"{value:.2f}"

    heads = ["", *(f"{name}, {part['programs']} bugs, {part['controls']} healthy" for name, part in parts.items())]
    yield from table(heads, [[head, *(cell(part[key]) for part in parts.values())] for head, key, _ in columns])
    yield ""
    yield f"{results['date']}, {results['machine']}, torch {results['torch']}, {results['device'].upper()}."


def text_of(results):
    """results.json: one tool, one category a line."""
    parts = []
    for key, value in results.items():
        if key in ("tools", "categories"):
            rows = ",\n".join(f'  "{name}": {json.dumps(one)}' for name, one in value.items())
            parts.append(f' "{key}": {{\n{rows}\n }}')
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def share_text(good, total):
    return f"{good / total:.2f}" if total else "-"


def interval_text(good, total):
    return "{:.2f}..{:.2f}".format(*wilson(good, total))


def row(cells):
    return "| " + " | ".join(cells) + " |"


def table(heads, rows):
    return [row(heads), "|" + " --- |" * len(heads), *map(row, rows)]


def tool_rows(results, columns, cell):
    """One row a tool, `cell(value)` a metric, `-` for what it never tells; numsan's intervals."""
    titles = {"numsan": "**numsan**", **running.baselines()}
    for name, figures in results["tools"].items():
        yield [titles[name], *(cell(figures[key]) if need is None or need in figures["gives"]
                               else "-" for _, key, need in columns)]
        if name == "numsan":
            yield ["95 % interval", *(interval_text(*figures[key])
                                      if isinstance(figures[key], list) else "" for _, key, _ in columns)]


def short_table(results):
    yield from table(["tool", *(head for head, _, _ in SHORT)],
                     tool_rows(results, SHORT, lambda value: share_text(*value)))
    yield ""
    yield (f"{results['programs']} bug programs, {results['controls']} healthy ones, {results['date']}, "
           f"torch {results['torch']}, {results['device'].upper()}. Shares of all bug programs,")
    yield "missed ones included; false alarms are of the healthy ones. `-`: the tool does not report that at all."
    yield "The others are this project's own adapters of these methods (`tests/suite/baselines`), each credited with"
    yield "any line it could name. numsan's rules were set with these programs in view."
    suite = manifests.load()
    today = len(suite["programs"]), len(suite["controls"])
    if today != (results["programs"], results["controls"]):
        yield f"The suite has grown since, to {today[0]} and {today[1]}."


def long_table(results):
    def cell(value):
        if isinstance(value, list):
            return f"{value[0]}/{value[1]}"
        return str(value) if isinstance(value, int) else f"{value:.2f}"

    yield f"{results['date']}, {results['machine']}, torch {results['torch']}, Python {results['python']}."
    yield ""
    yield from table(["tool", *(head for head, _, _ in LONG)], tool_rows(results, LONG, cell))


def category_table(results):
    def counted(counts):
        right, answers, programs = (counts[key] for key in ("right", "answers", "programs"))
        return [str(programs), str(answers), str(right), str(counts["accepted"] - right),
                share_text(right, answers), share_text(right, programs),
                share_text(2 * right, answers + programs)]

    every = results["categories"]
    total = {key: sum(one[key] for one in every.values())
             for key in ("programs", "answers", "right", "accepted")}
    heads = ["category", "programs", "answers", "right", "accepted besides",
             "precision", "recall", "F1"]
    yield from table(heads, [[name, *counted(one)] for name, one in every.items()]
                     + [["all", *counted(total)]])


def confusion_table(results):
    """Rows are labels, columns what was ranked first; U: nothing, or no finding."""
    every = results["categories"]
    others = {name for one in every.values() for name in one["answered"]} - set(every)
    columns = [*every, *sorted(others, reverse=True)]
    yield (f"{results['programs']} bug programs, {results['device'].upper()}, tier full, {results['date']}; rows are "
           "labels, columns what numsan ranked first:")
    yield ""
    yield from table(["label", *columns], [[name, *(str(one["answered"].get(column, "")) for column in columns)]
                                           for name, one in every.items()])


def calibration_table(results):
    figures = results["calibration"]
    low, high = figures["held_out_factors"]
    yield from table(["expected calibration error", "", "scale, times the reported one"], [
        ["as reported", f"{figures['reported']:.3f}", "1"],
        ["scale fitted on all families", f"{figures['fitted']:.3f}", str(figures["fitted_factor"])],
        ["each family by a scale fitted on the others", f"{figures['held_out']:.3f}",
         f"{low} to {high}"]])
    yield ""
    yield f"{figures['answers']} answers of {figures['families']} families, {figures['right']} right."


BLOCKS = ((ACCURACY, "suite", short_table), (ACCURACY, "suite confusion", confusion_table),
          (ACCURACY, "threads", threads_table),
          (BENCH, "suite tools", long_table),
          (BENCH, "suite categories", category_table),
          (BENCH, "suite calibration", calibration_table),
          *thread_tables.BLOCKS)


def rendered(results, root):
    """{path: (text before, text after)} of the files with tables below `root`."""
    texts = {}
    for file, name, make in BLOCKS:
        path = root / file
        before, after = texts.get(path) or [path.read_text()] * 2
        pattern = re.compile(rf"(<!-- table {name} -->\n)(.*?)(<!-- end table -->)", re.DOTALL)
        if len(pattern.findall(after)) != 1:
            raise LookupError(f"{path}: expected the marker '<!-- table {name} -->' once, with its end")
        block = "\n".join(make(results)) + "\n"
        texts[path] = before, pattern.sub(lambda match: match[1] + block + match[3], after)
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--threads", nargs=2, type=pathlib.Path, metavar=("RUN", "FIXED"))
    parser.add_argument("--write", action="store_true", help="rewrite the tables instead of comparing them")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    parser.add_argument("--root", type=pathlib.Path, default=running.REPO, help="the folder of docs/")
    options = parser.parse_args()
    if options.folder:
        stored = {path.stem: json.loads(path.read_text()) for path in sorted(options.folder.glob("*.json"))}
        before = json.loads(options.results.read_text()) if options.results.exists() else None
        options.results.write_text(text_of(collected(manifests.load(), stored, before)))
    if options.threads:
        stored = [json.loads(path.read_text()) for path in options.threads]
        THREADS.write_text(json.dumps(collected_threads(manifests.load(name="threads"), *stored), indent=1) + "\n")
    try:
        texts = rendered(json.loads(options.results.read_text()), options.root)
    except LookupError as error:
        print(f"figures: {error}")
        return 2
    status = 0
    for path, (before, after) in texts.items():
        if before != after and (options.write or options.folder or options.threads):
            path.write_text(after)
            print(f"figures: wrote {path}")
        elif before != after:
            sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True),
                                                       str(path), options.results.name, n=0))
            status = 1
    if status:
        print("figures: different; tests/suite/figures.py --write takes over what results.json says")
    return status


if __name__ == "__main__":
    sys.exit(main())
