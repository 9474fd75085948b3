"""The folder that a run leaves: few files, small enough to be carried off."""
import json
import tarfile

import section

LIMIT = 16 << 20
SUMMARY, RESULTS, LOG, REPORTS = "summary.json", "results.md", "log.txt", "reports.tar.gz"


def keep_ends(path, limit):
    """Cuts the middle out of a text file that is too large."""
    text = path.read_bytes()
    if len(text) > limit:
        cut = f"\n... {len(text) - limit} bytes are left out here ...\n".encode()
        path.write_bytes(text[:limit // 2] + cut + text[-limit // 2:])


def pack_reports(reports, archive, limit):
    """Reports by part, smallest first as long as there is room; names of those that found none."""
    files = sorted((path for path in reports.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    left_out, room = [], limit
    with tarfile.open(archive, "w:gz") as tar:
        for path in files:
            room -= path.stat().st_size // 2  # JSON shrinks to less than half
            if room < 0:
                left_out.append(str(path.relative_to(reports)))
            else:
                tar.add(path, path.relative_to(reports))
    return left_out


def merged(summaries):
    """One summary of several: each part's last outcome. Raises ValueError where they are of different machines or
    commits."""
    first, commands = summaries[0], []
    for one in summaries:
        if (one["commit"], one["machine"]) != (first["commit"], first["machine"]):
            raise ValueError(f"{one['command']} ran on another machine or commit than {first['command']}")
        commands.append(one["command"])
    parts = {name: outcome for one in summaries for name, outcome in one["parts"].items()}
    return {**summaries[-1], "command": "; ".join(dict.fromkeys(commands)), "parts": parts}


def write(out, summary, log, reports):
    """Fills `out`. The summary also tells which reports found no room."""
    out.mkdir(parents=True, exist_ok=True)
    if log.resolve() != (out / LOG).resolve():
        (out / LOG).write_bytes(log.read_bytes())
    keep_ends(out / LOG, LIMIT // 2)
    if reports.exists():
        summary = {**summary, "reports_left_out": pack_reports(reports, out / REPORTS, LIMIT)}
    (out / SUMMARY).write_text(json.dumps(summary, indent=1) + "\n")
    (out / RESULTS).write_text(section.text(summary) + "\n")
