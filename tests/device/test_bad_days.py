"""numsan on drivers that fail it, beside other tools, and in processes that go wrong: the program runs as without it,
one line says what was not looked at, and the report is incomplete. Scripts fail calls that only numsan makes."""
import json
import signal
import subprocess

import pytest

import run_numsan

pytestmark = pytest.mark.xdist_group("device")  # one worker has the processes of which they are forks
FAKES = run_numsan.BUILD / "fakes"

# With an optimizer of torch's each process would import torch's compiler, too.
TRAIN = """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 1)).to(GPU)
x = torch.randn(32, 6).to(GPU)
def step(bad=False):
    loss = model(x).square().mean()
    model.zero_grad()
    (torch.log(-loss) if bad else loss).backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
    return loss
def state():
    return [p.detach().cpu().view(torch.int32).tolist() for p in model.parameters()]
"""
HEALTHY = TRAIN + """
for _ in range(5): step()
print(state(), torch.get_rng_state().sum().item(), unequal_bytes())
"""


@pytest.mark.parametrize("script, reason", [
    ("version=12000", "tensors on devices: the driver supports CUDA 12.0, numsan needs 12.1 or later"),
    ("cuModuleLoadData=209", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
    ("cuModuleLoadData=800", "CUDA_ERROR_NOT_PERMITTED"),
    pytest.param("cuMemHostRegister=800", "CUDA_ERROR_NOT_PERMITTED", marks=pytest.mark.nightly),
    pytest.param("cuModuleLoadData=2", "CUDA_ERROR_OUT_OF_MEMORY", marks=pytest.mark.nightly),
    ("cuMemHostRegister=2", "CUDA_ERROR_OUT_OF_MEMORY"),
    ("cuLaunchKernel=719:9", "CUDA error 719"),
    ("version=12010;cuModuleLoadData=222",
     "cuModuleLoadData: CUDA_ERROR_UNSUPPORTED_PTX_VERSION: numsan's kernels are of CUDA "),
    pytest.param("version=12090;cuModuleLoadData=200", "CUDA_ERROR_INVALID_IMAGE: numsan's kernels are of CUDA ",
                 marks=pytest.mark.nightly),
], ids=["old driver", "architecture", "not permitted", "registering not permitted", "memory", "host memory", "launch",
        "ptx too new", "image too new"])
def test_a_driver_that_fails_numsan(script, reason, attached):
    said, report = attached("from prelude import *\n" + HEALTHY, env={"FAKE_CUDA": script})
    assert said.count("\n") == 1 and said.startswith("numsan: incomplete: tensors on ") and reason in said, said
    assert report["verdict"] == "incomplete" and reason in " ".join(report["coverage"]["blind_spots"])


def test_drivers_of_cuda_12_that_load_the_kernels_are_as_good(attached):
    for version in (12010, 12090):
        said, report = attached("from prelude import *\n" + HEALTHY, env={"FAKE_CUDA": f"version={version}"})
        assert (said, report["verdict"]) == ("", "clean"), said


def test_no_memory_for_numsan_on_the_device(attached):
    """The second allocation is numsan's; without it, the program's own, which asks again after it has tidied up."""
    said, report = attached("from prelude import *\n" + HEALTHY, env={"FAKE_CUDA": "cuMemAlloc=2:1:1"})
    assert said.count("\n") == 1 and said.startswith("numsan: incomplete: tensors on "), said
    assert "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY" in said and report["verdict"] == "incomplete"


def test_no_driver(attached, tmp_path):
    """torch on the host, on a machine where nothing of CUDA is."""
    said, report = attached("import torch\nx = torch.ones(3, requires_grad=True)\n(x * 2).sum().backward()\n"
                            "print(x.grad.tolist())\n", env={"LD_LIBRARY_PATH": str(tmp_path)},
                            options={"cupti": "off"})
    assert (said, report["verdict"]) == ("", "clean"), said


CAPTURES = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
side = torch.Stream(device=GPU)
stream, RELAXED = ctypes.c_void_p(side.native_handle), 2  # relaxed: the device's allocator asks the driver meanwhile
def captured(work):
    graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
    with side:
        assert driver.cuStreamBeginCapture_v2(stream, RELAXED) == 0
        result = work()
        assert driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
    assert driver.cuGraphInstantiateWithFlags(ctypes.byref(ready), graph, ctypes.c_uint64(0)) == 0
    assert driver.cuGraphDestroy(graph) == 0
    return result, ready
def replay(graph):
    assert driver.cuGraphLaunch(graph, stream) == 0
    assert driver.cuStreamSynchronize(stream) == 0
"""


def test_a_first_use_inside_a_capture(attached):
    said, report = attached("from prelude import *\n" + CAPTURES + """
y, graph = captured(lambda: torch.full((8,), 2.0, device=GPU) * 3)
replay(graph)
print(y.sum().item())
z = torch.ones(4, device=GPU) * 5
print(z.sum().item())
""")
    assert said.count("\n") == 1 and said.startswith("numsan: incomplete: "), said
    assert "captured into a graph, and nothing can be prepared meanwhile: run an operator before the capture" in said
    assert report["verdict"] == "incomplete" and report["coverage"]["scanned"] > 0


@pytest.mark.parametrize("script", ["", "cuUserObjectCreate=801"], ids=["told of their end", "never told"])
def test_more_graphs_than_there_is_scratch_for(script, attached):
    """A driver that does not say when a graph is gone leaves all that come after the first 384 unseen."""
    said, report = attached("from prelude import *\n" + CAPTURES + """
x = torch.ones(8, device=GPU)
D.synchronize()
for _ in range(400):
    y, graph = captured(lambda: x * 3)
    assert driver.cuGraphExecDestroy(graph) == 0
replay(captured(lambda: x * 4)[1])
print(x.sum().item())
""", env={"FAKE_CUDA": script})
    if not script:
        assert (said, report["verdict"]) == ("", "clean"), said
        return
    assert said.count("\n") == 1 and said.startswith("numsan: incomplete: "), said
    assert "there are more streams and graphs than there is scratch for: let go of graphs that are over" in said
    assert report["verdict"] == "incomplete"


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


@pytest.mark.parametrize("error", [pytest.param(709, id="destroyed"),
                                   pytest.param(700, id="illegal address", marks=pytest.mark.nightly)])
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


@pytest.mark.nightly
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


WHILE_IT_WORKS = """
hold()
for _ in range(3): step()
os.kill(os.getpid(), signal.SIGKILL)
"""
IN_MID_LAUNCH = """
driver = ctypes.CDLL("libcuda.so.1")
stall, calls = driver._ZN9fake_cuda5stallEPKcb, driver._ZN9fake_cuda5callsEPKc
calls.restype = ctypes.c_uint64
before = calls(b"cuLaunchKernel")
def kill():
    while calls(b"cuLaunchKernel") == before: pass
    os.kill(os.getpid(), signal.SIGKILL)
stall(b"cuLaunchKernel", True)
threading.Thread(target=kill).start()
step()
"""


@pytest.mark.parametrize("end", [WHILE_IT_WORKS, IN_MID_LAUNCH], ids=["while the device works", "in mid-launch"])
def test_a_process_that_is_killed(end, test_device, warm, tmp_path):
    """What was found before is on disk, whole."""
    program = tmp_path / "program.py"
    program.write_text("from prelude import *\nimport ctypes, os, signal, threading\n" + TRAIN + """
for n in range(3): step(n == 1)
print(state(), flush=True)
""" + end)
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
