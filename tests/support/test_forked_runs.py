"""A fork of the process that has imported torch leaves what a process of its own leaves."""
import pytest

import run_numsan

ABOUT = """
import os, pickle, random, sys, threading
import torch

class Kept:
    pass

print(__name__, __file__ == sys.argv[0], sys.argv[1:], os.getcwd(), sys.path[0] == os.path.dirname(__file__))
print(type(pickle.loads(pickle.dumps(Kept()))) is Kept, sys.stdin.read() == "", sys.stdout.isatty())
print(sorted(key for key in os.environ if key != "PYTEST_CURRENT_TEST"))
torch.manual_seed(1)
print(torch.rand(2), torch.rand(2, generator=torch.Generator()), torch.get_num_threads())
parameter = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.Adam([parameter])
for number in torch.utils.data.DataLoader(range(3), num_workers=1):
    (parameter * number).sum().backward()
    optimizer.step()
print(parameter)
import atexit
atexit.register(print, "at the end")
left_open = open("left_open", "w")
left_open.write("written")
threading.Thread(target=lambda: print("of a thread")).start()
print("warned", file=sys.stderr)
"""


def both(text, folder, *args):
    program = folder / "program.py"
    program.write_text(text)
    return (run(program, args=args, cwd=folder) for run in (run_numsan.run_plain, run_numsan.run_forked))


def test_what_a_program_sees(tmp_path):
    plain, forked = both(ABOUT, tmp_path, "one", "two words")
    assert plain.returncode == 0 and plain.stdout.endswith("at the end\n"), plain.describe()
    assert (forked.returncode, forked.stdout, forked.stderr) == (0, plain.stdout, "warned\n"), forked.describe()
    assert (tmp_path / "left_open").read_text() == "written"


@pytest.mark.parametrize("ending, status", [
    ("sys.exit(3)", 3), ("sys.exit('own words')", 1), ("raise ValueError('own trouble')", 1),
    ("raise KeyboardInterrupt", -2), ("os._exit(4)", 4), ("os.kill(os.getpid(), 9)", -9), ("os.abort()", -6)],
    ids=["exit", "words", "exception", "interrupt", "_exit", "kill", "abort"])
def test_what_ends_badly_is_told_by_a_process_of_its_own(ending, status, tmp_path):
    plain, forked = both(f"import os, sys\nopen('ran', 'a').write('once ')\nprint('here', flush=True)\n{ending}\n",
                         tmp_path)
    assert (tmp_path / "ran").read_text() == "once " * 3
    assert plain.returncode == status
    assert (forked.returncode, forked.stdout, forked.stderr) == (status, plain.stdout, plain.stderr)


def test_one_run_leaves_nothing_to_the_next(tmp_path):
    text = "import sys, torch\nprint(torch.is_grad_enabled(), hasattr(torch, 'left'))\n" \
           "torch.left = 1\ntorch.set_grad_enabled(False)\n"
    for _ in range(2):
        plain, forked = both(text, tmp_path)
        assert forked.stdout == plain.stdout == "True False\n", forked.describe()
