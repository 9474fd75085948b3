"""numsan on drivers that fail it, beside other tools, and in processes that go wrong: the program runs as without it,
one line says what was not looked at, and the report is incomplete. Scripts fail calls that only numsan makes."""
import json
import signal
import subprocess

import pytest

import run_numsan

FAKES = run_numsan.BUILD / "fakes"

TRAIN = """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 1)).to(GPU)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x = torch.randn(32, 6).to(GPU)
def step(bad=False):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    (torch.log(-loss) if bad else loss).backward()
    optimizer.step()
    return loss
def state():
    return [p.detach().cpu().view(torch.int32).tolist() for p in model.parameters()]
"""
HEALTHY = TRAIN + """
for _ in range(5): step()
print(state(), torch.get_rng_state().sum().item(), unequal_bytes())
"""


@pytest.fixture
def attached(test_device, warm, tmp_path):
    """Runs a program without and with numsan: what it said, its report. Exit status and stdout have to be the same."""
    def run(text, env=None, options=None, status=0, silent=True):
        program = tmp_path / "program.py"
        program.write_text(text)
        results = []
        for watch in (False, True):
            command, environment = [run_numsan.PYTHON, str(program)], {**test_device, **(env or {})}
            if watch:
                command, environment = run_numsan.attached(command, report=tmp_path / "report.json", env=environment,
                                                           options={"raw": "1", **(options or {})})
                environment["NUMSAN_CACHE"] = str(run_numsan.CACHE)
            results.append(subprocess.run(command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
                                          capture_output=True, text=True, timeout=400))
        bare, done = results
        assert bare.returncode == status and not (silent and bare.stderr), bare.stderr[-3000:]
        assert (done.returncode, done.stdout) == (status, bare.stdout), done.stderr[-3000:]
        report = run_numsan.read_report(tmp_path / "report.json")
        if report is not None:
            run_numsan.validate(report)
        return done.stderr, report
    return run


@pytest.mark.parametrize("script, reason", [
    ("version=12000", "tensors on devices: the driver supports CUDA 12.0, numsan needs 12.1 or later"),
    ("cuModuleLoadData=209", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
    ("cuModuleLoadData=800", "CUDA_ERROR_NOT_PERMITTED"),
    ("cuMemHostRegister=800", "CUDA_ERROR_NOT_PERMITTED"),
    ("cuModuleLoadData=2", "CUDA_ERROR_OUT_OF_MEMORY"),
    ("cuMemHostRegister=2", "CUDA_ERROR_OUT_OF_MEMORY"),
    ("cuLaunchKernel=719:9", "CUDA error 719"),
], ids=["old driver", "architecture", "not permitted", "registering not permitted", "memory", "host memory", "launch"])
def test_a_driver_that_fails_numsan(script, reason, attached):
    said, report = attached("from prelude import *\n" + HEALTHY, env={"FAKE_CUDA": script})
    assert said.count("\n") == 1 and said.startswith("numsan: incomplete: tensors on ") and reason in said, said
    assert report["verdict"] == "incomplete" and reason in " ".join(report["coverage"]["blind_spots"])


LOSES = """
import atexit, ctypes
atexit.unregister(fakegpu._finish)  # the device itself cannot end well
driver = ctypes.CDLL("libcuda.so.1")
def lose(result):
    # the context of this thread: every call fails from now on, and what it was given is never done
    context = ctypes.c_void_p()
    driver.cuCtxGetCurrent(ctypes.byref(context))
    driver._ZN9fake_cuda11make_stickyEPvi(context, result)
def fails(function):
    try:
        function()
        print("no error")
    except RuntimeError:
        print("the program's own error")
"""


@pytest.mark.parametrize("error", [709, 700], ids=["destroyed", "illegal address"])
def test_a_context_that_is_lost_under_us(error, attached):
    said, report = attached("from prelude import *\n" + TRAIN + LOSES + f"""
for _ in range(3): step()
print(state())
hold()
for _ in range(2): step()
lose({error})
release()
fails(step)
fails(state)
print(torch.ones(3).sum().item())
""")
    assert said.count("\n") == 1 and said.startswith("numsan: incomplete: tensors on "), said
    assert report["verdict"] == "incomplete"


def test_a_context_that_the_program_ends_itself(attached):
    """What it had waited for was looked at: nothing was missed."""
    said, report = attached("from prelude import *\n" + TRAIN + LOSES + """
for n in range(3): step(n == 2)
D.synchronize()
print(driver.cuDevicePrimaryCtxReset_v2(0))
fails(step)
print(torch.ones(3).sum().item())
""")
    assert said.count("error[") == 1 and "aten::log" in said and report["verdict"] == "findings", said


def test_another_injection_library_makes_no_difference_to_torch(attached, tmp_path):
    theirs = tmp_path / "libtheirs.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", theirs, "-xc", "-"], check=True, text=True,
                   input="#include <unistd.h>\nint InitializeInjection(void) { return write(1, \"theirs\", 6); }")
    said, report = attached("from prelude import *\n" + HEALTHY, env={"CUDA_INJECTION64_PATH": str(theirs)})
    assert (said, report["verdict"]) == ("", "clean"), said


def test_cuda_before_torch(attached):
    """A library that starts CUDA first: the report is the session's, as if torch had been first."""
    said, report = attached(f"import ctypes\nprint(ctypes.CDLL('{FAKES}/libcuda.so.1').cuInit(0))\n"
                            "from prelude import *\n" + TRAIN + "for n in range(4): step(n == 3)\nprint(state())\n")
    assert said.count("error[") == 1 and "aten::log" in said and "incomplete" not in said, said
    assert report["verdict"] == "findings" and report["run"]["framework"]["name"] == "pytorch"


def test_cuda_before_torch_that_never_comes(attached):
    said, report = attached(f"import ctypes\nprint(ctypes.CDLL('{FAKES}/libcuda.so.1').cuInit(0))\n",
                            options={"cupti": "off"})
    assert said.count("\n") == 1 and "nothing was scanned, and kernels were not counted: cupti=off" in said, said
    assert report["verdict"] == "incomplete" and report["run"]["framework"] is None


def test_a_cupti_that_does_not_know_the_driver(attached):
    """The real CUPTI, which torch brings, asked for beside the fake driver."""
    said, report = attached("from prelude import *\n" + HEALTHY, options={"cupti": "on"})
    assert said.count("\n") == 1 and said.startswith("numsan: kernel launches are not counted: CUPTI"), said
    assert report["verdict"] == "clean" and "kernels" not in report["coverage"]
    assert any(spot.startswith("kernel launches: not counted: CUPTI") for spot in report["coverage"]["blind_spots"])


def test_torchs_profiler_works_beside_it(attached):
    """It asks the real CUPTI, which tells it of the fake driver's errors as it does without numsan."""
    said, report = attached("from prelude import *\n" + TRAIN + """
from torch.profiler import ProfilerActivity, profile
step()
with profile(activities=[ProfilerActivity.CPU]) as run:
    for _ in range(3): step()
counts = {event.key: event.count for event in run.key_averages()}
print(counts["aten::gelu"], state())
""", silent=False)
    assert "numsan" not in said and report["verdict"] == "clean", said


def test_a_process_killed_while_the_device_works(test_device, warm, tmp_path):
    """What was found before is on disk, whole."""
    program = tmp_path / "program.py"
    program.write_text("from prelude import *\nimport os, signal\n" + TRAIN + """
for n in range(3): step(n == 1)
print(state(), flush=True)
hold()
for _ in range(3): step()
os.kill(os.getpid(), signal.SIGKILL)
""")
    command, environment = run_numsan.attached([run_numsan.PYTHON, program], report=tmp_path / "report.json",
                                               env=test_device)
    environment["NUMSAN_CACHE"] = str(run_numsan.CACHE)
    done = subprocess.run(command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=400)
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]
    report = json.loads((tmp_path / "report.json").read_text())
    run_numsan.validate(report)
    assert (len(report["findings"]), report["run"]["ended"]) == (1, None) and done.stderr.count("error[") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py", "report.json"]
