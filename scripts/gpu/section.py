"""The section of tests/bench/RESULTS.md that a run makes. Only what was measured is in it; of targets also that they
were not."""
import gpu_targets


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(heads, rows):
    return [row(heads), "|" + " --- |" * len(heads), *map(row, rows)]


def size_text(size):
    for unit, shift in (("GB", 30), ("MB", 20), ("KB", 10)):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def range_text(spread, scale=1.0, digits=2):
    low, middle, high = (f"{spread[key] * scale:.{digits}f}" for key in ("low", "median", "high"))
    return f"{middle} ({low}..{high})"


def percent_text(ratio):
    low, middle, high = (100 * (ratio[key] - 1) for key in ("low", "median", "high"))
    return f"{middle:+.1f} % ({low:+.1f}..{high:+.1f})"


def attach_table(answers):
    rows = [[one["question"], one["answer"] or "not asked", one["seen"].replace("|", "\\|").replace("\n", " ")]
            for one in answers.values()]
    return table(["question", "answer", "what was seen"], rows)


def suite_lines(result):
    coverage = result["coverage"]
    yield (f"{result['same']} of {result['programs']} programs of the public suite have the exit status and verdict "
           f"that they have on the CPU; {coverage['scanned']} ops were scanned, {coverage['bytes']} bytes; not "
           f"looked at: {coverage['skipped'] or 'nothing'}.")
    for name, one in result["different"].items():
        yield f"* {name}: {one['cpu']['verdict']} on the CPU, {one['device']['verdict']} on the device " \
              f"(exit status {one['cpu']['exit_status']}, {one['device']['exit_status']})"


def rate_rows(rates):
    names = [name for name in ("scan", "cub", "thrust", "isfinite") if any(name in one["subjects"] for one in rates)]
    yield ["type", "size", "outputs a launch", "copy GB/s", "scan us", *(f"{name} GB/s" for name in names),
           *(f"{name} of copy" for name in names)]
    for one in rates:
        subjects = one["subjects"]
        rate = [range_text(subjects[name]["gb_per_s"], digits=0) if name in subjects else "-" for name in names]
        share = [range_text(subjects[name]["of_copy"]) if name in subjects else "-" for name in names]
        kind = [one["type"], *(one[key] for key, usual in (("layout", "dense"), ("values", "finite"))
                               if one.get(key, usual) != usual)]
        yield [", ".join(kind), size_text(one["bytes"]), one["batch"],
               range_text(subjects["copy"]["gb_per_s"], digits=0), range_text(subjects["scan"]["microseconds"]),
               *rate, *share]


def scan_lines(result):
    heads, *rows = rate_rows(result["rates"])
    yield "Rates count bytes read, the copy's bytes read and written; median and quartiles of alternating turns."
    yield ""
    yield from table(heads, rows)
    yield ""
    yield "What a scan costs the host's thread, per op:"
    yield ""
    rows = [[one["what"], range_text(one["nanoseconds"], digits=0)] for one in result["host"]]
    yield from table(["scan", "ns"], rows)


def step_lines(result):
    rows = []
    for work in result["works"]:
        for name, one in work["configurations"].items():
            node = one.get("microseconds_a_node")
            coverage = one.get("coverage")
            rows.append([work["title"] if name == "bare" else "", name, range_text(one["seconds"], 1e3),
                         "" if name == "bare" else percent_text(one["of_bare"]),
                         f"{coverage['scanned']} ops, {coverage['bytes'] / 1e9:.1f} GB" if coverage else "",
                         f"{range_text(node)} us a node" if node and name != "bare" else ""])
    yield "Ratios are to the bare turn just before, in a process that lived beside the others; the bare row is of the"
    yield "first such group, so times of other groups compare by their ratios only. Median and quartiles."
    yield ""
    yield from table(["work", "configuration", "ms a step", "against bare", "scanned in the whole run", "graph"], rows)
    for work, reason in result["failed"].items():
        yield ""
        yield f"{work} was not measured: {' '.join(reason.split())[-300:]}"


def score_lines(data):
    rows = [[key, f"{value['good']}/{value['of']}"] for key, value in data["scores"].items()
            if isinstance(value, dict) and "good" in value]
    return table(["metric, public suite on the device", "programs"], rows)


def test_lines(data):
    yield f"{data['tests']} tests, {data['failed']} of their runs failed."
    yield ""
    yield "The scanner's own cost on the host, with a driver whose launches do nothing:"
    yield ""
    yield from table(["scan", "ns"], [[name, f"{value:.0f}"] for name, value in data["host"].items()])


SECTIONS = (("tests", "Tests with the label gpu", test_lines), ("attach", "Programs bare and watched", attach_table),
            ("suite", "Verdicts", suite_lines), ("score", "Scores", score_lines), ("scan", "Scan rates", scan_lines),
            ("steps", "Training steps and graph replays", step_lines))


def text(summary):
    """Markdown of a summary, without a last newline."""
    machine = summary["machine"]
    lines = [f"{summary['date']}, {machine.get('gpu', 'no GPU')}, driver {machine.get('driver', '-')}, "
             f"{machine['cores']} cores of {machine['cpu']}, torch {machine.get('torch', '-')}, Python "
             f"{machine.get('python', '-')}, CUDA {machine.get('nvcc', '-')}, commit {summary['commit']}.", "",
             f"    {summary['command']}", ""]
    lines += table(["part", "result", "s", "in a line"],
                   [[name, one["result"], one["seconds"], one["line"].replace("|", "\\|")]
                    for name, one in summary["parts"].items()])
    data = {name: one["data"] for name, one in summary["parts"].items()}
    lines += ["", "#### Targets", "", "The figure that is furthest from its target, and whose it is.", ""]
    lines += table(["target", "limit", "measured", "holds"], gpu_targets.held(data))
    for name, title, make in SECTIONS:
        data = summary["parts"].get(name, {}).get("data")
        if data:
            lines += ["", f"#### {title}", "", *make(data)]
    return "\n".join(lines)
