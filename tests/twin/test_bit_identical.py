"""Healthy real programs, with and without numsan: same bits, same output, same exit status, and nothing said."""
import collections
import pathlib
import re

import pytest

import retries
import run_numsan

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
SHOWN = ["parameters", "random of torch", "random of Python", "random of numpy"]
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
CASES = {
    "gpt2": ["gpt2.py"],
    "llama": ["llama.py"],
    "resnet": ["resnet.py"],
    "lightning": ["lightning_trainer.py"],
    "grad_scaler": ["grad_scaler.py"],
    **{f"workers_{method}": ["workers.py", method] for method in ("fork", "forkserver")},
    "workers_spawn": ["workers.py", "spawn", "1"],  # in one epoch: each worker of another would import torch again
    "ddp": [*TORCHRUN, "ddp.py"],
    "compiled_aot_eager": ["compiled.py", "aot_eager"],
    "compiled_inductor": ["compiled.py", "inductor"],
    "transforms": ["transforms.py"],
}
LONG = ["bert", "t5", "vit", "mixtral", "unet", "ppo", "ctc", "transducer", "gan", "contrastive", "lbfgs"]
STEPS, LONG_STEPS = 20, 50
CASES.update({name: [f"{name}.py"] for name in LONG})
# Under a program that imports numsan and calls all of it at every step.
CASES.update({f"asking_{name}": ["asking.py", *CASES[name]] for name in ("gpt2", "resnet", "workers_fork")})
# Watched in forks; the others are watched from their start.
FORKED = {*LONG, "llama", "transforms"}
# Run in forks of processes that have imported it, by one worker.
OF_TRANSFORMERS = {"gpt2", "llama", "bert", "t5", "vit", "mixtral", "asking_gpt2"}


def command_of(case):
    """The command line of a case, program files made absolute."""
    return [run_numsan.PYTHON, *(str(PROGRAMS / part) if part.endswith(".py") else part for part in CASES[case])]


def steps_taken(stdout):
    """The steps of grad_scaler.py that changed the parameters; one that the scaler skips is none, and not counted."""
    taken, skipped = map(int, re.search(r"^taken (\d+) skipped (\d+)$", stdout, re.M).groups())
    assert taken + skipped == STEPS and taken > 0 and skipped > 0, stdout
    return taken


def lines_without_numbers(text):
    """The lines of a program's own warnings with times, pids, ports and line numbers made equal."""
    return collections.Counter(re.sub(r"[0-9]+", "#", line) for line in text.splitlines())


def run_both(case, tmp_path, options):
    """The case without and with numsan, what the latter added to stderr, and its reports. Without it all but a
    launcher's are forks. Of those watched in forks a bad value comes after the program."""
    folders = [tmp_path / "plain", tmp_path / "watched"]
    for folder in folders:
        folder.mkdir(parents=True)
    program, *args = command_of(case)[1:]
    modules = run_numsan.TRANSFORMERS if case in OF_TRANSFORMERS else []
    if program.endswith(".py"):
        plain = run_numsan.run_forked(program, args=args, cwd=folders[0], timeout=300, modules=modules)
    else:
        plain = run_numsan.run_plain_command(command_of(case), cwd=folders[0], timeout=300)
    assert plain.returncode == 0, f"the program does not run without numsan\n{plain.describe()}"
    assert all(f"{word} " in plain.stdout for word in SHOWN), plain.describe()
    if case in FORKED:
        watched = run_numsan.run_watched_fork(program, args=args, cwd=folders[1], options=options, timeout=300,
                                              clean=True, modules=modules)
        reports = [watched.report]
    else:
        options = {"report": folders[1] / "report-%p.json", **options}
        watched = run_numsan.run_command(command_of(case), cwd=folders[1], options=options, timeout=300)
        reports = [run_numsan.read_report(path) for path in folders[1].glob("report-*.json")]
    assert watched.returncode == plain.returncode, watched.describe()
    assert watched.stdout == plain.stdout, f"--- without numsan\n{plain.stdout}\n{watched.describe()}"
    added = lines_without_numbers(watched.stderr) - lines_without_numbers(plain.stderr)
    return plain, watched, added, reports


def check(case, tmp_path, options):
    """Runs the case with and without numsan; the reports and the output of the watched run."""
    plain, watched, added, reports = run_both(case, tmp_path / "first", options)
    # A worker that ends late on a busy machine makes Python warn. What numsan itself says is never excused.
    if added and not any("numsan" in line or re.match(r"(error|warning|info)\[NS", line) for line in added):
        retries.note(f"twin {case}", f"stderr had {sorted(added)}")
        plain, watched, added, reports = run_both(case, tmp_path / "again", options)
    assert not added, f"numsan added to stderr: {list(added)}\n{watched.describe()}"
    assert reports and None not in reports, f"{len(reports)} reports\n{watched.describe()}"
    for found in reports:
        run_numsan.validate(found)
        assert found["verdict"] == "clean" and found["findings"] == [], found["findings"] or found["coverage"]
    assert any(found["coverage"]["ops"] > 0 for found in reports), "numsan saw no op: silence means nothing here"
    return reports, watched.stdout


def first_in_ci(*cases):
    """Parameters of which the first is run in CI, the others at night."""
    return [pytest.param(case, marks=[pytest.mark.nightly] if case != cases[0] else []) for case in cases]


@pytest.mark.parametrize("case", first_in_ci("grad_scaler", "gpt2", "lbfgs"))
def test_holding_arguments_for_a_dump_changes_nothing(case, warm, tmp_path):
    folder = tmp_path / "dumps"
    check(case, tmp_path, {"dump": folder})
    expected = 1 if case in FORKED else 0  # of the bad value that follows a fork
    assert len(list(folder.glob("*"))) == expected


@pytest.mark.parametrize("case", first_in_ci("workers_fork", "gpt2", "grad_scaler", "lbfgs", "resnet", "ddp",
                                             "transforms"))
def test_being_ready_to_stop_changes_nothing(case, warm, tmp_path):
    check(case, tmp_path, {"break": 1})


@pytest.mark.xdist_group("transformers")
def test_all_of_it_at_once_changes_nothing(warm, tmp_path):
    folder = tmp_path / "dumps"
    check("asking_gpt2", tmp_path, {"break": 1, "dump": folder})
    assert not list(folder.glob("*"))


COMPILED = ["compiled_aot_eager", "compiled_inductor"]


# CI has asking_gpt2 with all options.
AT_NIGHT = {"asking_resnet", "asking_gpt2", "workers_forkserver", "workers_spawn", "lightning"}


def marks(case):
    return ([pytest.mark.nightly] if case in AT_NIGHT else []) + \
        ([pytest.mark.xdist_group("transformers")] if case in OF_TRANSFORMERS else [])


@pytest.mark.parametrize("case", [pytest.param(case, marks=marks(case)) for case in CASES if case not in COMPILED])
def test_run_is_bit_identical_and_silent(case, warm, tmp_path):
    reports, stdout = check(case, tmp_path, {})
    counted = max(found["run"]["steps"] for found in reports)
    if case == "grad_scaler":
        assert counted == steps_taken(stdout), f"{counted} steps counted\n{stdout}"
    else:
        assert counted >= (LONG_STEPS if case in LONG else STEPS), counted
    if case == "ddp":
        assert {0, 1} <= {found["run"]["rank"] for found in reports}, "each rank is watched"


@pytest.mark.parametrize("case", first_in_ci("grad_scaler", "gpt2"))
@pytest.mark.parametrize("tier", ["boundary", "sentinel"])
def test_lower_tiers_change_nothing_either(tier, case, warm, tmp_path):
    reports, _ = check(case, tmp_path, {"tier": tier})
    assert all(found["run"]["tier"] == tier for found in reports)


@pytest.mark.parametrize("case", COMPILED)
def test_compiled_run_is_bit_identical_and_says_what_is_not_seen(case, warm, tmp_path):
    reports, _ = check(case, tmp_path, {})
    assert max(found["run"]["steps"] for found in reports) >= STEPS
    said = [spot for found in reports for spot in found["coverage"]["blind_spots"] if "torch.compile" in spot]
    assert bool(said) == (case == "compiled_inductor"), said  # aot_eager calls operators, which are seen


def test_python_without_torch_is_left_alone(warm, tmp_path):
    program = tmp_path / "plain.py"
    program.write_text("import json\nprint(json.dumps({'a': 1}))\nraise SystemExit(5)\n")
    done = run_numsan.run(program, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (5, '{"a": 1}\n', ""), done.describe()
    assert done.report is None, "a process that never loads torch has nothing to report"
