"""Reports for tests of what is made of reports: several ranks, an incomplete run, and words that each format must
escape."""
import copy
import json
import pathlib

GOLDEN = pathlib.Path(__file__).parent / "golden"
EXAMPLE = json.loads((GOLDEN / "example_report.json").read_text())
# Every format has a character here that means something in it.
HOSTILE = "a|b `c` ``d`` <e> & \"f\" 'g' ]]> {0} [h](1) @team #7 *i* _j_ \\k \u2028 \ufffe \u0007 é 漢"


def example(**run):
    """The published report, with changes in `run`."""
    report = copy.deepcopy(EXAMPLE)
    report["run"].update(run)
    return report


def finding(number, **changes):
    """Another finding of the published kind, on another line."""
    made = copy.deepcopy(EXAMPLE["findings"][0])
    made.update(id=f"F{number + 1}", fingerprint=f"{number:012x}")
    made["location"].update(line=100 + number, code=f"return x_{number}.sqrt()")
    made["forward"]["location"] = dict(made["location"])
    made.update(changes)
    return made


def night():
    """Four ranks: two with the published finding, one of them with a warning of its own, one healthy, one killed."""
    ranks = [example(rank=rank, world_size=4, pid=100 + rank, host=f"node{rank}") for rank in range(4)]
    ranks[1]["findings"][0].update(step=409, count=3)
    ranks[1]["findings"].append(finding(
        1, severity="warning", code="NS105", mechanism="UDF", kind="underflow", module=None, forward=None,
        title="underflow: `aten::mul` flushed 7 of 9 values to zero", op="aten::mul", phase="forward",
        backward_location=None, help=[], written_location={
            "file": "/home/user/job/losses.py", "line": 12, "function": "scale", "code": "h = torch.tanh(x)"}))
    ranks[2].update(findings=[], verdict="clean")
    ranks[3].update(findings=[], verdict="incomplete")
    ranks[3]["run"].update(exit_status=None, ended=None)
    ranks[3]["cost"].update(wall_s=0.5, scan_s=None)
    return ranks


def hostile():
    """Every text that can come from a program holds all that could break a format."""
    report = example(cwd="/home/user/a job", argv=["python", f"{HOSTILE}.py"], host=HOSTILE)
    made = finding(2, title=HOSTILE, op=f"custom::{HOSTILE}", module=HOSTILE, help=[HOSTILE], evidence=[HOSTILE])
    made.update(kernel=HOSTILE, launches=[
        {"kernel": HOSTILE, "call": HOSTILE, "grid": [64, 1, 1], "block": [256, 1, 1], "shared_bytes": 49152,
         "stream": HOSTILE, "correlation_id": 17, "number": 12}])
    made["location"].update(file="/home/user/a job/dir: 100%/l össes#1.py", code=HOSTILE, function=HOSTILE)
    other = finding(3, location=None, user_location=None, forward=None, backward_location=None, module=None)
    string = finding(4, code="NS999", mechanism="NEW", title="a rule of a later version")
    string["location"] = {"file": "<string>", "line": 1, "function": "<module>", "code": None}
    report["findings"] = [made, other, string]
    return report


def write(folder, reports, name="numsan-{}.json"):
    """The reports as files of a folder; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name.format(number) for number in range(len(reports))]
    for path, report in zip(paths, reports):
        path.write_text(json.dumps(report))
    return paths
