"""Reports without what differs between two runs of one program on one build; differences between two snapshots.

Dropped: when and where a run took place (times, process numbers, host, folders), what it cost, versions, and the
frames of code that is not this repository's. Everything else of a report stays, all of each finding.
"""
import json
import re

# By the path of keys below the report.
DROPPED = ("tool", "cost", "run.id", "run.argv", "run.cwd", "run.pid", "run.process", "run.host", "run.started",
           "run.ended", "run.framework", "run.python", "run.options")
OWN_FRAMES = re.compile(r"tests/(support/fork_server|archetypes/run_cases|snapshot/\w+)\.py$")
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,16}\b")
SECONDS = re.compile(r"\b[0-9.]+ (s|seconds)\b")


class Normal:
    """Normalises what a program left. `root` is the checkout, `folder` where the run wrote."""

    def __init__(self, root, folder):
        self.places = [(re.compile(re.escape(str(folder)) + r"(/tmp\w+)?"), "RUN"),
                       (re.compile(re.escape(str(root))), "REPO"),
                       (re.compile(r"/\S*/(site-packages|dist-packages)/"), "PACKAGES/"),
                       (re.compile(r"/\S*/lib/python3\.\d+/"), "PYTHON/"), (re.compile(r"\bpython3\.\d+\b"), "python3")]

        self.parts = {"stack": self.frames, "contaminated": self.names}

    def text(self, text):
        for pattern, name in self.places:
            text = pattern.sub(name, text)
        text = re.sub(r"(report|log)-\d+(?=\.(json|txt))", r"\1-PID", text)
        return SECONDS.sub(r"N \1", ADDRESS.sub("at ADDRESS", text))

    def value(self, value):
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.parts.get(key, self.value)(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.value(one) for one in value]
        return value

    def frames(self, stack):
        """Those of the program: torch's own lines are another version's business."""
        frames = [self.value(frame) for frame in stack]
        return [frame for frame in frames if frame.get("file") is None or
                (frame["file"].startswith("REPO/") and not OWN_FRAMES.search(frame["file"]))]

    def names(self, contaminated):
        """Sorted: tensors that were found bad at one time are in the order of their addresses."""
        return sorted(self.value(contaminated), key=lambda one: json.dumps(one, sort_keys=True))

    def report(self, report):
        if report is None:
            return "not readable"
        kept = json.loads(json.dumps(report))
        for path in DROPPED:
            *outer, last = path.split(".")
            inside = kept
            for key in outer:
                inside = inside.get(key, {})
            inside.pop(last, None)
        return self.value(kept)

    def program(self, left):
        """One program's part of a snapshot. The first report is that of the process itself, others are in the order of
        their content: they end in any order."""
        def ordered(reports):
            own = [one for one in reports if one is not None and one["run"]["pid"] == left["pid"]]
            others = [self.report(one) for one in reports if one not in own]
            return [*map(self.report, own), *sorted(others, key=lambda one: json.dumps(one, sort_keys=True))]

        result = {"status": left["status"], "stdout": self.text(left["stdout"]).splitlines(),
                  "text": sorted(self.text(text) for text in left["texts"]), "reports": ordered(left["reports"])}
        if "counted" in left:
            result["clean"] = ordered(left["counted"])
        return result


def flat(value, path=""):
    """{path: leaf} of nested lists and objects; an empty one is a leaf."""
    if isinstance(value, dict) and value:
        return {key: leaf for name, one in value.items()
                for key, leaf in flat(one, f"{path}.{name}".lstrip(".")).items()}
    if isinstance(value, list) and value:
        return {key: leaf for number, one in enumerate(value) for key, leaf in flat(one, f"{path}[{number}]").items()}
    return {path: value}


def differences(before, after):
    """Lines "program: field: before -> after" of two snapshots, in order."""
    lines = []
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            lines.append(f"{name}: {'only before' if name in before else 'only after'}")
            continue
        old, new = flat(before[name]), flat(after[name])
        absent = object()
        for field in sorted(old.keys() | new.keys()):
            pair = [one.get(field, absent) for one in (old, new)]
            # In JSON 1 and 1.0, and 1 and true, are not the same text.
            shown = ["absent" if one is absent else json.dumps(one) for one in pair]
            if shown[0] != shown[1]:
                lines.append(f"{name}: {field}: {shown[0]} -> {shown[1]}")
    return lines
