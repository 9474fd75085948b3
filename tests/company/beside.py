"""What all tests of this folder ask: a program does the same with numsan as without it, and its bug is found."""
import pathlib
import re

import run_numsan

TIMEOUT = 400  # seconds; a busy machine is no failure
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
TRAINING = PROGRAMS / "small_training.py"


def run_with_preload(preload, program, folder, timeout=TIMEOUT):
    """A program with numsan where `{numsan}` stands in the LD_PRELOAD list `preload`."""
    report = folder / "report.json"
    command = ["env", f"LD_PRELOAD={preload.format(numsan=run_numsan.LIBRARY)}", f"NUMSAN_CACHE={run_numsan.CACHE}",
               f"NUMSAN_OPTIONS=report={report}", *map(str, program)]
    return run_numsan.run_plain_command(command, cwd=folder, timeout=timeout)


def said_by_numsan(watched, plain):
    """What numsan added to stderr; fails if it did not come after all that the program says by itself."""
    ours = re.search(r"^(?:numsan:|error\[NS|warning\[NS|info\[NS)", watched.stderr, re.M)
    assert ours is not None, watched.describe()
    return watched.stderr[ours.start():]


def without_addresses(text):
    """memray says of some Pythons where malloc() is, which differs from process to process."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x", text)


def check(plain, watched, place=None, clean_stderr=True):
    """Same status and output; one finding, at the line of `place` that ends with # BUG; nothing else is said."""
    assert plain.returncode == 0, f"the program does not run without numsan\n{plain.describe()}"
    assert watched.returncode == plain.returncode, watched.describe()
    assert watched.stdout == plain.stdout, f"--- without numsan\n{plain.stdout}\n{watched.describe()}"
    assert len(watched.findings) == 1, f"{len(watched.findings)} findings\n{watched.describe()}"
    found, place = watched.findings[0]["location"], place or TRAINING
    assert found is not None, watched.describe()
    assert (found["file"], found["line"]) == (str(place), run_numsan.marked_line(place)), watched.describe()
    said = said_by_numsan(watched, plain)
    assert len(re.findall(r"^(?:error|warning|info)\[NS", said, re.M)) == 1 and "off:" not in said, watched.describe()
    if clean_stderr:
        assert without_addresses(watched.stderr) == without_addresses(plain.stderr + said), watched.describe()


def check_forked(name, folder, args=(), **more):
    """check, of a program that needs no process of its own."""
    program = PROGRAMS / name
    plain = run_numsan.run_forked(program, args=args, cwd=folder, timeout=TIMEOUT)
    watched = run_numsan.run_watched_fork(program, args=args, cwd=folder, timeout=TIMEOUT)
    check(plain, watched, **more)
    return plain, watched


def check_process(name, folder, args=(), **more):
    """check, of a program in a process of its own."""
    program = PROGRAMS / name
    plain = run_numsan.run_plain(program, args=args, cwd=folder, timeout=TIMEOUT)
    watched = run_numsan.run(program, args=args, cwd=folder, timeout=TIMEOUT)
    check(plain, watched, **more)
    return plain, watched
