"""A finding on a device names the kernels that its operator launched, those of a graph included."""
import pytest

import run_numsan

CUPTI = run_numsan.BUILD / "fakes" / "libcupti.so.13"
BEGIN = """from prelude import *
cupti = ctypes.CDLL(None)  # who opens it by its name gets it for good
cupti.fake_cupti_subscriber.restype = ctypes.c_char_p
torch.manual_seed(0)
w = torch.rand(300, 6, device=GPU).requires_grad_()
x = torch.rand(6, device=GPU)
def step(bad):
    loss = ((x - x.min()) if bad else (x + 1)).log().sum() * 0 + (w @ x).square().mean()
    print(loss.item())
    w.grad = None
    loss.backward()
    with torch.no_grad():
        w.sub_(torch.nan_to_num(w.grad), alpha=0.1)
"""


@pytest.fixture
def kernels(test_device, warm, tmp_path):
    """Runs a program on a device that launches kernels, beside the fake CUPTI, without and with numsan; with the same
    output. Gives back what numsan's run said, with its report."""
    if not CUPTI.exists():
        pytest.fail(f"{CUPTI} is missing: build first (scripts/build)", pytrace=False)

    def run(text, options=None, env=None):
        program = tmp_path / "program.py"
        program.write_text(BEGIN + text)
        environment = {**test_device, "FAKEGPU_KERNELS": "1", "LD_PRELOAD": str(CUPTI), **(env or {})}
        bare = run_numsan.run_plain(program, env=environment, cwd=tmp_path, timeout=400)
        done = run_numsan.run(program, options=options, env=environment, cwd=tmp_path, timeout=400)
        assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout), done.describe()
        return done
    return run


def of(done, op):
    """The one finding of an operator."""
    found = [finding for finding in done.report["findings"] if finding["op"] == op]
    assert len(found) == 1, done.describe()
    return found[0]


def names(finding):
    return [launch["kernel"] for launch in finding.get("launches", [])]


def test_kernels_of_an_operator(kernels):
    done = kernels("for n in range(4): step(n == 2)\n"
                   "print(torch.full((70000,), 3e38, device=GPU).sum().item())\n", {"cupti": "on"})
    log, total = of(done, "aten::log"), of(done, "aten::sum")
    assert names(log) == ["fakegpu::kernels::pointwise(void*)"] and log["kernel"] == names(log)[0], done.describe()
    launch = log["launches"][0]
    assert launch["call"] == "cuLaunchKernel" and launch["stream"] == "0x0" and launch["shared_bytes"] == 0
    assert launch["grid"] == [1, 1, 1] and launch["block"] == [256, 1, 1] and launch["correlation_id"] > 0, launch
    assert names(total) == ["fakegpu::kernels::partial_sums(void*)", "fakegpu::kernels::sum_of_parts(void*)"]
    assert total["kernel"] == names(total)[1]
    number = total["launches"][1]["number"]
    assert number == total["launches"][0]["number"] + 1 > log["launches"][0]["number"] > 0, done.describe()
    shown = f"   = kernel:   fakegpu::kernels::sum_of_parts(void*), launch {number}, grid "
    assert shown in done.stderr, done.describe()
    assert "; the last that the operator launched\n" in done.stderr, done.describe()
    assert done.report["coverage"]["kernels"]["launches"] > 20


def test_cupti_is_left_alone_unless_it_is_asked_for(kernels):
    """The program asks who is subscribed, with the same answer as without numsan."""
    done = kernels("for n in range(6): step(n > 2); print(cupti.fake_cupti_subscriber())\n")
    assert done.stdout.count("b''") == 6 and of(done, "aten::log")["kernel"] is None, done.describe()
    assert "kernels" not in done.report["coverage"] and done.report["coverage"]["blind_spots"] == []


def test_what_the_program_launches_itself_is_no_operators(kernels):
    done = kernels("""
driver, module, function = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuModuleLoadData(ctypes.byref(module), b"host functions") == 0
name = b"fake_cupti_subscriber"
assert driver.cuModuleGetFunction(ctypes.byref(function), module, name) == 0
def launch():
    pointer = ctypes.c_void_p()
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
    assert driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, parameters, None) == 0
for n in range(4):
    launch()
    step(n == 2)
y = x - x.min()
launch()
print(y.log().sum().item())
""", {"cupti": "on"})
    assert done.report["coverage"]["kernels"]["by_name"]["fake_cupti_subscriber"] == 5, done.describe()
    found = done.report["findings"]
    assert len(found) == 2 and all(names(one) == ["fakegpu::kernels::pointwise(void*)"] for one in found), found


def test_a_replay_names_what_was_captured(kernels):
    """However many launches lie between the capture and the replay."""
    done = kernels("""
y = torch.full((8,), -1.0, device=GPU)
D.synchronize()
with Graph() as graph:
    z = (y * 2).log()
for _ in range(20000): x.neg_()
graph.replay(3)
print(z.sum().item())
""", {"cupti": "on"})
    log = of(done, "aten::log")
    assert names(log) == ["fakegpu::kernels::pointwise(void*)"], done.describe()
    assert log["launches"][0]["stream"] != "0x0"


PROFILER = """
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(lambda *_: None)
subscriber = ctypes.c_void_p()
def profile():
    print(cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None))
def profiled():
    print(cupti.cuptiUnsubscribe(subscriber))
"""


def test_a_profiler_gets_cupti_and_gives_it_back(kernels):
    done = kernels(PROFILER + """
for n in range(6): step(n > 2)
profile()
print(torch.full((70000,), 3e38, device=GPU).sum().item())
profiled()
print(torch.full((70000,), 3e38, device=GPU).prod().item())
""", {"cupti": "on"})
    assert "0\ninf\n0\ninf\n" in done.stdout, done.describe()
    assert names(of(done, "aten::log")) and names(of(done, "aten::prod")), done.describe()
    assert of(done, "aten::sum")["kernel"] is None, done.describe()


def test_where_kernels_were_asked_for_the_report_says_why_there_are_none(kernels):
    done = kernels("for n in range(4): step(n == 2)\n", {"cupti": "on"}, {"FAKE_CUPTI": "held=Nsight Systems"})
    assert of(done, "aten::log")["kernel"] is None
    assert done.report["coverage"]["blind_spots"] == [
        "kernel launches: not counted: CUPTI is taken by Nsight Systems"], done.describe()


def test_threads_have_their_own(kernels):
    done = kernels("""
def work(rounds):
    for _ in range(rounds): torch.matmul(w.detach(), x)
threads = [threading.Thread(target=work, args=(300,)) for _ in range(3)]
for thread in threads: thread.start()
for n in range(30): step(n % 5 == 4)
for thread in threads: thread.join()
""", {"cupti": "on"})
    assert names(of(done, "aten::log")) == ["fakegpu::kernels::pointwise(void*)"], done.describe()
