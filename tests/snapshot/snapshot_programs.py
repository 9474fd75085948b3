"""The programs of a snapshot, and how each is run."""
import pathlib
import re
import sys
from dataclasses import dataclass

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "archetypes"))
import cases  # noqa: E402

CASE = TESTS / "snapshot" / "one_case.py"
RUN_CASES = TESTS / "archetypes" / "run_cases.py"
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
# Their children, ranks or compiler need a process that began as theirs.
METHODS = ("fork", "spawn", "forkserver")


@dataclass
class Program:
    """One run. `command` follows the interpreter; `alone`: in a process of its own, not in a fork."""
    name: str
    command: list
    alone: bool = False
    env: tuple = ()


def suite():
    for folder in ("programs", "controls"):
        for path in sorted((TESTS / "suite" / folder).glob("*.py")):
            needs = re.search(r"# label:.*\bneeds=(\w+)", path.read_text())
            yield Program(f"suite/{path.stem}", [path], alone=needs is not None)


def archetypes():
    for case in cases.all_cases():
        yield Program(f"archetypes/{case.file.stem}/{case.name}", [CASE, case.file, case.name])


def bug_programs():
    folder = TESTS / "programs"
    for path in sorted(folder.glob("*/expect.json")):
        for half in ("victim", "twin"):
            yield Program(f"programs/{path.parent.name}/{half}", [path.with_name(f"{half}.py")],
                          alone=path.parent.name == "loader_worker")
    for path in sorted((folder / "guards").glob("*.py")):
        yield Program(f"programs/guards/{path.stem}", [path])
    for method in METHODS:
        yield Program(f"programs/start_methods/{method}", [folder / "start_methods/train.py", method, "-9"], alone=True)
        yield Program(f"programs/loader_worker/{method}", [folder / "loader_worker/victim.py", method], alone=True)
    yield Program("programs/demo", [folder / "demo/train.py", "--epochs", "2", "--steps", "30"])


def twins():
    folder = TESTS / "twin" / "programs"
    several = {"workers": [[method] for method in METHODS], "compiled": [["aot_eager"], ["inductor"]]}
    for path in sorted(folder.glob("*.py")):
        if path.stem == "state":
            continue
        if path.stem == "ddp":
            yield Program("twin/ddp", [*TORCHRUN, path], alone=True)
            continue
        for args in several.get(path.stem, [[]]):
            yield Program("/".join(["twin", path.stem, *args]), [path, *args], alone=path.stem in several)


def all_programs():
    """Every program of the snapshot; names are unique."""
    return [*suite(), *archetypes(), *bug_programs(), *twins()]
