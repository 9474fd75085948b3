"""numsan attached to programs on the test device, whose work is late: nothing is harmed, nothing is said too early."""
import pytest

import run_numsan

pytestmark = pytest.mark.xdist_group("device")  # one worker has the processes of which they are forks
TRAIN = """
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 1)).to(GPU)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x = torch.randn(32, 6).to(GPU)
def step(model=model, x=x):
    loss = model(x).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    return loss
"""


def test_a_healthy_training_is_the_same_and_silent(watched):
    done = watched(TRAIN + """
for _ in range(20): step()
for p in model.parameters(): print(p.detach().cpu().view(torch.int32).tolist())
print(torch.get_rng_state().sum().item(), unequal_bytes())
""", clean=True)
    assert done.stderr == ""


def test_the_finding_is_told_before_the_program_sees_the_value(watched):
    done = watched(TRAIN + """
for _ in range(3): step()
loss = torch.log(-model(x).square().mean())  # BUG
loss.backward()
if loss.isnan().item(): os._exit(0)  # no time for anything else
""")
    assert done.stderr.count("error[NS101]") == 1 and "aten::log" in done.stderr, done.stderr


def test_a_program_that_never_waits_is_told_at_its_end(watched):
    done = watched(TRAIN + """
for i in range(5):
    if i == 3: x.mul_(float("inf"))
    step()
""", delay_us=2000)
    assert done.stderr.count("error[") == 1 and "step 3" in done.stderr, done.stderr


def test_copies_that_come_later_are_not_read_before(watched):
    done = watched(TRAIN + """
logs = []
for _ in range(10):
    loss = step()
    logs.append(loss.detach().to("cpu", non_blocking=True))
    fresh = torch.full((1024,), float("nan"), pin_memory=True)
    fresh.copy_(torch.ones(1024, device=GPU), non_blocking=True)
torch.get_device_module(GPU).synchronize()
print([round(x.item(), 6) for x in logs], fresh.sum().item())
""", delay_us=1000, clean=True)
    assert done.stderr == "", done.stderr


def test_streams_threads_and_forked_children(watched):
    done = watched(TRAIN + """
import os, threading
side = torch.Stream(device=GPU)
def work(n):
    with side:
        y = torch.ones(1000, device=GPU)
        for _ in range(n): y = y * 1.001
    side.synchronize()
    return y.cpu().sum().item()
threads = [threading.Thread(target=work, args=(50,)) for _ in range(3)]
for t in threads: t.start()
step()
for t in threads: t.join()
child = os.fork()
if child == 0:
    ok = bool(torch.isfinite(torch.nn.Linear(4, 4)(torch.randn(2, 4)).sum()))
    os._exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
print(status, work(3) > 0, step().isfinite().item())
""", clean=True)
    assert done.stderr == "", done.stderr


def test_two_devices_at_once(watched):
    done = watched("""
torch.manual_seed(0)
models = [nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 1)).to(f"{GPU}:{n}") for n in range(2)]
inputs = [torch.randn(32, 6).to(f"{GPU}:{n}") for n in range(2)]
for i in range(6):
    losses = [model(x).square().mean() for model, x in zip(models, inputs)]
    if i == 4:
        losses[1] = torch.log(-losses[1])  # BUG
    for loss in losses: loss.backward()
    total = losses[0] + losses[1].to(f"{GPU}:0")
print(torch.isfinite(total).item(), [torch.isfinite(p.grad).all().item() for p in models[0].parameters()])
""")
    assert done.stderr.count("error[NS101]") == 1 and "program.py:9" in done.stderr, done.stderr


def test_what_a_graph_does_is_told_by_its_replays(watched):
    done = watched("""
x = torch.full((8,), -1.0, device=GPU)
D.synchronize()
with Graph() as graph:
    y = (x * 2).log()  # BUG
graph.replay(3)
print(y.sum().item())
""")
    assert done.stderr.count("[NS101]") == 1 and "aten::log" in done.stderr, done.stderr
    assert "program.py:6" in done.stderr, done.stderr


def test_a_backend_that_does_not_tell_its_streams_is_asked_once(test_device, warm, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("from prelude import *\nx = torch.ones(3, device=GPU)\nfor _ in range(20): x = x + 1\n"
                       "print(x.sum().item())\n")
    done = run_numsan.run(program, env={**test_device, "FAKEGPU_NO_HANDLES": "1"}, cwd=tmp_path, timeout=300)
    assert (done.returncode, done.stdout) == (0, "63.0\n"), done.describe()
    assert done.stderr.count("asked for a handle") == 1, done.describe()
    assert any("streams" in spot for spot in done.report["coverage"]["blind_spots"]), done.describe()


STEP_WITH_GUARD = """
torch.manual_seed(0)
model = nn.Linear(5, 4).to(GPU)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(6):
    x = torch.rand(16, 5).to(GPU)
    learned = step in (2, 5)
    target = model(x).detach() if learned else torch.rand(16, 4).to(GPU)
    (model(x) - target).square().sum(1).sqrt().mean().backward()
    bad = not all(p.grad.isfinite().all() for p in model.parameters())
    assert bad == learned
    for p in model.parameters():
        GUARD
    optimizer.step()
    for p in model.parameters():
        p.grad = None
print(all(p.isfinite().all().item() for p in model.parameters()))
"""
GUARDS = {
    "set_to_none": "if bad: p.grad = None",
    "replaced": "p.grad = torch.nan_to_num(p.grad, nan=0.0)",
    "cured_in_place": "p.grad.nan_to_num_(nan=0.0)",
    "zeroed": "if bad: p.grad.zero_()",
}


@pytest.mark.parametrize("options", [{}, {"tier": "full", "budget": "0.000001", "warmup": "0"}], ids=["auto", "lean"])
@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_is_no_error(watched, guard, options):
    done = watched(STEP_WITH_GUARD.replace("GUARD", GUARDS[guard]), options=options)
    assert done.stdout == "True\n"
    assert "error[" not in done.stderr, done.stderr
    assert done.stderr.count("warning[NS102]") == 1, done.stderr


@pytest.mark.parametrize("options", [{}, {"tier": "full", "budget": "0.000001", "warmup": "0"}], ids=["auto", "lean"])
@pytest.mark.parametrize("check", ["torch.isfinite(loss)", "not torch.isnan(loss)", "loss == loss"])
def test_a_program_that_ends_over_its_check(watched, check, options):
    done = watched(TRAIN + f"""
for _ in range(3): step()
for bad in (False, True):
    loss = torch.log(model(x).square().mean() * (-1 if bad else 1))  # BUG
    if not ({check}): sys.exit(3)
    loss.backward()
    optimizer.step()
""", status=3, options=options)
    assert done.stderr.count("warning[NS101]") == 1 and "aten::log" in done.stderr, done.stderr
    assert "error[" not in done.stderr and "program.py:14" in done.stderr, done.stderr


@pytest.mark.parametrize("options", [{}, {"tier": "full", "budget": "0.000001", "warmup": "0"}], ids=["auto", "lean"])
def test_without_a_guard_it_is_an_error(watched, options):
    text = STEP_WITH_GUARD.replace("GUARD", "pass").replace("in (2, 5)", "in (2,)").replace(
        "assert bad == learned", "if step > 2: break")
    done = watched(text, options=options)
    assert done.stdout == "False\n"
    assert done.stderr.count("error[") == 1 and "into the gradient of model." in done.stderr, done.stderr
    assert options or "error[NS102]" in done.stderr, done.stderr  # in a lean step the op may be gone


# Nothing waits for the device between the gradient and its use: by then nobody knows that it was bad.
UNSEEN = """
torch.manual_seed(0)
model = nn.Linear(5, 4).to(GPU)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.rand(16, 5).to(GPU)
for step in range(6):
    loss = model(x).square().mean()
    if step == 2:
        D.synchronize()
        hold()
        w = model.weight
        loss = loss + (w - w.detach()).sqrt().sum()  # BUG
    loss.backward()
    CURE
    optimizer.step()
    optimizer.zero_grad()
    release()
print(all(p.isfinite().all().item() for p in model.parameters()))
"""
CURES = {
    "clipped_by_value": "nn.utils.clip_grad_value_(model.parameters(), 1.0)",
    "clamped": "for p in model.parameters(): p.grad.clamp_(-1, 1)",
    "signs": "for p in model.parameters(): p.grad.sign_()",
    "filled": "for p in model.parameters(): p.grad.masked_fill_(~p.grad.isfinite(), 0)",
    "chosen": "for p in model.parameters(): p.grad.copy_(torch.where(p.grad.isfinite(), p.grad, 0.0))",
}
LEAN = {"tier": "full", "budget": "0.000001", "warmup": "0"}


@pytest.mark.parametrize("cure", CURES)
def test_a_gradient_that_is_cured_before_anybody_looks_is_no_error(watched, cure):
    done = watched(UNSEEN.replace("CURE", CURES[cure]), options=LEAN)
    assert done.stdout == "True\n"
    assert "error[" not in done.stderr, done.stderr


@pytest.mark.parametrize("cure", ["pass", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
                                  "for p in model.parameters(): p.grad.mul_(0.5)"])
def test_what_cures_nothing_is_an_error_though_nobody_looks(watched, cure):
    done = watched(UNSEEN.replace("CURE", cure), options=LEAN)
    assert done.stdout == "False\n"
    assert done.stderr.count("error[") == 1 and "into the gradient of model.weight" in done.stderr, done.stderr


FUSED = UNSEEN.replace("lr=0.05", "lr=0.05, fused=True")
SCALED = (FUSED.replace("for step", "scaler = torch.amp.GradScaler(GPU, init_scale=4.0)\nfor step")
          .replace("loss.backward()", "scaler.scale(loss).backward()")
          .replace("optimizer.step()", "scaler.step(optimizer); scaler.update()"))


def test_a_fused_optimizer_that_a_loss_scaler_tells_to_skip_is_no_error(watched):
    done = watched(SCALED.replace("CURE", "pass"), options=LEAN)
    assert done.stdout == "True\n"
    assert "error[" not in done.stderr, done.stderr


def test_a_fused_optimizer_that_takes_a_gradient_up_is_an_error_though_nobody_looks(watched):
    done = watched(FUSED.replace("CURE", "pass"), options=LEAN)
    assert done.stdout == "False\n"
    assert done.stderr.count("error[") == 1 and "into the gradient of model.weight" in done.stderr, done.stderr
