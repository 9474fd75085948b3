"""The test device: the CPU's bits, in stream order, late."""
import pytest

pytestmark = pytest.mark.xdist_group("device")  # one worker has the processes of which they are forks
OPTIMIZERS = {
    "sgd": "lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, foreach=True)",
    "adam": "lambda p: torch.optim.Adam(p, lr=0.01, foreach=True)",
    "adamw": "lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True)",
    "fused_adam": "lambda p: torch.optim.Adam(p, lr=0.01, fused=True)",
}
MODELS = {
    "mlp": ("nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))", "torch.randn(8, 6)"),
    "transformer": ("nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)", "torch.randn(3, 7, 16)"),
    "conv": ("nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), "
             "nn.Dropout(0.3), nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Flatten(), nn.Linear(4 * 8 * 8, 5))",
             "torch.randn(4, 3, 8, 8)"),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_training_gives_the_bits_of_the_cpu(on_device, model, optimizer):
    network, batch = MODELS[model]
    on_device(f"same(lambda device: train({network}, {batch}, device, {OPTIMIZERS[optimizer]}))")


def test_recurrent_networks(on_device):
    """The device's cells are fused as a GPU's are, so sums are taken in another order than on the CPU."""
    on_device("""
for cell in (nn.LSTM, nn.GRU):
    results = []
    for device in ("cpu", GPU):
        torch.manual_seed(0)
        net = cell(5, 7, num_layers=2).to(device)
        out, _ = net(torch.randn(4, 3, 5).to(device))
        out.square().sum().backward()
        results.append([out.detach().cpu()] + [p.grad.cpu() for p in net.parameters()])
    for cpu, gpu in zip(*results):
        torch.testing.assert_close(cpu, gpu, rtol=1e-5, atol=1e-6)
assert unequal_bytes() == 0
""")


def test_operators(on_device):
    """Views, in place, out=, indexing, sorting, reductions, types, results whose size depends on data, conjugates."""
    on_device("""
def views(d):
    x = torch.arange(24.0).to(d).view(4, 6)
    kept = x
    x.t()[1:3, ::2].mul_(10)
    x[:, 1] = -1
    x.diagonal().fill_(7)
    x.unfold(1, 2, 2).add_(0.5)
    x.view(torch.int32)[0, 0] = 0
    assert x.select(0, 1).data_ptr() == kept.data_ptr() + 6 * 4 and x.chunk(2)[1]._base is not None
    a, b = x.split([2, 4], 1)
    a.copy_(b[:, :2])
    return x, a, b, x.expand(2, 4, 6), x.reshape(6, 4).contiguous(), torch.movedim(x, 0, 1), x.unbind(1)

def outputs(d):
    x, small, right = torch.randn(3, 4).to(d), torch.empty(0, device=d), torch.empty(3, 4, device=d)
    torch.add(x, 1, out=right)
    torch.exp(x, out=small)
    values, indices = torch.empty(0, device=d), torch.empty(0, dtype=torch.long, device=d)
    torch.sort(x, 1, out=(values, indices))
    gap = torch.zeros(3, 8, device=d)
    torch.sub(x, 2, out=gap[:, ::2])
    torch.cat([x, x], out=values)
    return small, right, values, indices, gap

def indexing(d):
    x, i = torch.randn(5, 4).to(d), torch.tensor([3, 0, 0])
    y = x[i.to(d)] + x[i] + x[i.to(d), 1].unsqueeze(1)
    x[x > 0.5] = 0.25
    x[i] = 9
    x.index_add_(0, i.to(d), torch.ones(3, 4, device=d)).scatter_(1, i.to(d).unsqueeze(1), -3.0)
    return x, y, x[x < 0], x.nonzero(), x.masked_select(x > 0), torch.unique(x), x.gather(1, i.to(d).unsqueeze(1))

def reductions(d):
    x = torch.randn(6, 5).to(d)
    return (x.sum(), x.mean(0), x.max(1), x.argmax(), x.std(), x.norm(), x.cumsum(0), x.topk(2), x.median(), x.tolist(),
            torch.linalg.svd(x), torch.linalg.inv(x[:5]), torch.fft.rfft(x), x.logsumexp(1), torch.equal(x, x + 0),
            x.any().item())

def types(d):
    x = torch.randn(8).to(d)
    c = torch.randn(3, 3, dtype=torch.complex64).to(d)
    return (x.half(), x.bfloat16() * 3, x.to(torch.float8_e4m3fn).float(), x.int() + 1.5, x.double().float(), x > 0,
            c.conj() @ c, c.real + 1, c.conj().imag.clone(), x + torch.tensor(2.0), 3 - x, x ** 2)

def foreach(d):
    x = [torch.randn(n).to(d) for n in (3, 5, 1)]
    torch._foreach_mul_(x, 3.0)
    torch._foreach_addcdiv_(x, x, [t.abs() + 1 for t in x], 0.5)
    return x, torch._foreach_norm(x), torch._foreach_sqrt([t.abs() for t in x])

def losses(d):
    x, t = torch.randn(6, 5).to(d).requires_grad_(), torch.tensor([0, 4, 2, 2, 1, 3]).to(d)
    p = x.softmax(1)
    each = [F.cross_entropy(x, t, label_smoothing=0.1), F.nll_loss(p.log(), t), F.smooth_l1_loss(x, p),
            F.binary_cross_entropy(p, torch.ones_like(p)), F.kl_div(p.log(), p.flip(0)), F.embedding(t, x).sum(),
            F.ctc_loss(x.log_softmax(1).unsqueeze(1), t[:2].unsqueeze(0), [6], [2])]
    sum(each).backward()
    return each, x.grad, torch.autograd.functional.hessian(lambda v: v.pow(3).sum(), torch.ones(2, device=d))

def random(d):
    return (torch.randn(5, device=d), torch.rand(3, device=d).bernoulli_(), torch.randperm(9, device=d),
            torch.multinomial(torch.ones(4, device=d), 2), nn.init.kaiming_uniform_(torch.empty(3, 4, device=d)),
            F.dropout(torch.ones(50, device=d)),
            torch.randn(4, device=d, generator=torch.Generator(d).manual_seed(5)))

def storages(d):
    x = torch.arange(6.0).to(d)
    x.resize_(9)[6:] = 1
    y = torch.empty(0, device=d).set_(x.untyped_storage(), 2, (2, 2), (2, 1))
    z = copy.deepcopy(x)
    z.untyped_storage().resize_(4)
    return (x, y, z.untyped_storage().nbytes(), torch.tril_indices(3, 3, device=d), torch.eye(3, device=d),
            torch.linspace(0, 1, 5, device=d))

def uninitialised(d):
    torch.use_deterministic_algorithms(True)
    result = torch.empty(3, device=d), torch.empty(2, dtype=torch.int, device=d), torch.zeros(2).to(d).resize_(4)
    torch.use_deterministic_algorithms(False)
    return result

for function in (views, outputs, indexing, reductions, types, foreach, losses, random, storages, uninitialised):
    same(function)
""")


def test_attention(on_device):
    on_device("""
def attention(d):
    q, k, v = (torch.randn(2, 4, 9, 8).to(d).requires_grad_() for _ in range(3))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    mask = torch.ones(9, 9, dtype=torch.bool).tril().to(d)
    out = out + F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    out.square().sum().backward()
    return out, q.grad, k.grad, v.grad
same(attention)
""")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_autocast_and_scaler(on_device, dtype):
    done = on_device(f"""
net, x = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 1)).to(GPU), torch.randn(5, 4, device=GPU)
opt, scaler = torch.optim.SGD(net.parameters(), lr=0.1), torch.amp.GradScaler(GPU, init_scale=2.0 ** 40)
scales = []
for _ in range(30):
    opt.zero_grad()
    with torch.autocast(GPU, dtype=torch.{dtype}):
        hidden = net[0](x)
        assert hidden.dtype is torch.{dtype} and net[1](hidden).dtype is hidden.exp().dtype is torch.float32
        loss = net(x).square().mean()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    scaler.step(opt)
    scaler.update()
    scales.append(scaler.get_scale())
assert torch.isfinite(net[0].weight).all() and unequal_bytes() == 0
print(scales[-1] < 2.0 ** 40)
""")
    assert done.stdout == f"{dtype == 'float16'}\n"


def test_held_stream_makes_device_memory_late(on_device):
    on_device("""
x = torch.zeros(100, device=GPU)
D.synchronize()
hold()
x.add_(1)
y = x * 2
assert (peek(x) == 0).all()
assert not D.current_stream().query()
threading.Timer(0.2, release).start()
assert y.sum().item() == 200 and (peek(x) == 1).all() and D.current_stream().query()

with held():
    x.fill_(5)
    event = torch.Event(GPU)
    event.record()
    assert not event.query() and (peek(x) == 1).all()
event.synchronize()
assert (peek(x) == 5).all()
""")


def test_delay_slows_every_task(on_device):
    done = on_device("""
import time
x = torch.zeros(3, device=GPU)
D.synchronize()
started = time.monotonic()
for _ in range(5):
    x.add_(1)
given = time.monotonic() - started
assert x[0].item() == 5
print(given, time.monotonic() - started)
""", env={"FAKEGPU_DELAY_US": "50000"})
    given, ran = map(float, done.stdout.split())
    assert given < 0.15 and ran >= 0.25


def test_freed_block_is_the_next_of_its_size(on_device):
    on_device("""
x = torch.full((1000,), 3.0, device=GPU)
address, before, allocated = x.data_ptr(), D.blocks_reused(), D.memory_allocated()
hold()
x.add_(1)  # still to come when the block has its next owner
del x
y = torch.empty(1000, device=GPU)
assert y.data_ptr() == address and D.blocks_reused() == before + 1 and D.memory_allocated() == allocated
y.mul_(2)
release()
assert (y.cpu() == 8).all()  # nothing was cleared

side = torch.Stream(device=GPU)
address = y.data_ptr()
del y
with side:
    z = torch.empty(1000, device=GPU)
assert z.data_ptr() != address  # another stream's blocks are its own

hold(side)
kept = torch.empty(1000, device=GPU)
assert kept.data_ptr() == address
with side:
    kept.add_(1)
kept.record_stream(side)
del kept
assert torch.empty(1000, device=GPU).data_ptr() != address  # the side stream may not be done with it
release()
D.synchronize()
assert torch.empty(1000, device=GPU).data_ptr() == address
""")


def test_streams_are_concurrent_and_events_order_them(on_device):
    on_device("""
a, b = torch.zeros(4, device=GPU), torch.zeros(4, device=GPU)
one, two = torch.Stream(device=GPU), torch.Stream(device=GPU)
D.synchronize()
hold(one)
with one:
    a.add_(1)
    done = one.record_event()
with two:
    b.add_(1)
two.synchronize()
assert (peek(b) == 1).all() and (peek(a) == 0).all()  # `two` overtook `one`
two.wait_event(done)
with two:
    b.add_(a)
assert not two.query()
with two:
    assert (peek(b) == 1).all()
release()
two.synchronize()
assert (peek(b) == 2).all()

# A read waits for its own stream only: what another stream still has to write is not there.
hold(one)
with one:
    a.fill_(9)
with two:
    assert a.tolist() == [1, 1, 1, 1]
release()
D.synchronize()
assert a.tolist() == [9, 9, 9, 9] and unequal_bytes() == 0
""")


def test_a_captured_operator_runs_at_each_replay(on_device):
    on_device("""
import ctypes
cuda = ctypes.CDLL(fakegpu.DRIVER / "libcuda.so.1")
def call(name, *arguments):
    assert getattr(cuda, name)(*arguments) == 0, name
side, x = torch.Stream(device=GPU), torch.zeros(4, device=GPU)
D.synchronize()
handle, graph, executable = ctypes.c_void_p(side.native_handle), ctypes.c_void_p(), ctypes.c_void_p()
with side:
    call("cuStreamBeginCapture_v2", handle, 2)
    x.add_(1)
    call("cuStreamEndCapture", handle, ctypes.byref(graph))
    call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
    side.synchronize()
    assert peek(x).tolist() == [0, 0, 0, 0]
    for _ in range(2):
        x.fill_(7)
        call("cuGraphLaunch", executable, handle)
        side.synchronize()
        assert peek(x).tolist() == [1, 1, 1, 1]  # what the operator wrote when it was captured
""")


def test_two_devices(on_device):
    on_device("""
assert D.device_count() == 2 and D.current_device() == 0
x = torch.arange(4.0, device="fakegpu:1")
with D.device(1):
    assert torch.empty(1, device=GPU).device.index == 1
y = x.to("fakegpu:0") + 1
assert y.device.index == 0 and y.cpu().tolist() == [1, 2, 3, 4]
for other in (x, torch.ones(4)):
    try:
        y + other
    except RuntimeError as error:
        assert "same device" in str(error)
    else:
        raise AssertionError("operands of two devices were added")
hold(torch.accelerator.current_stream("fakegpu:1"))
x.add_(1)
with D.device(0):
    assert (y * 2).sum().item() == 20  # the other device does not wait
release()
assert x.cpu().tolist() == [1, 2, 3, 4] and unequal_bytes() == 0
""")


def test_backward_runs_on_the_devices_own_thread_and_stream(on_device):
    on_device("""
threads, streams = [], []
class Spy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        threads.append(threading.get_native_id())
        streams.append(D.current_stream().stream_id)
        return grad * 2

side = torch.Stream(device=GPU)
x = torch.ones(3, device=GPU, requires_grad=True)
side.wait_stream(D.current_stream())
with side:
    y = Spy.apply(x).sum()
D.current_stream().wait_stream(side)
y.backward()
assert threads[0] != threading.get_native_id() and streams == [side.stream_id]
assert x.grad.cpu().tolist() == [2, 2, 2]
""")


def test_an_operator_that_throws_leaves_it_usable(on_device):
    on_device("""
x = torch.ones(3, 4, device=GPU)
for wrong in (lambda: x @ x, lambda: torch.linalg.cholesky(-torch.eye(3, device=GPU)), lambda: x.to_sparse(),
              lambda: x[torch.tensor([7], device=GPU)], lambda: F.nll_loss(x, torch.tensor([9, 0, 0], device=GPU)),
              lambda: torch.empty(2, device="fakegpu:5")):
    try:
        wrong()
    except (RuntimeError, IndexError):
        pass
    else:
        raise AssertionError("nothing was thrown")
assert (x @ x.T).sum().item() == 36 and unequal_bytes() == 0
""")


def test_reproducible_and_saved(on_device):
    on_device("""
state = D.get_rng_state()
a = torch.randn(5, device=GPU)
D.set_rng_state(state)
assert torch.equal(a, torch.randn(5, device=GPU))
torch.manual_seed(3)
b = torch.randn(5, device=GPU)
torch.manual_seed(3)
assert torch.equal(b, torch.randn(5, device=GPU)) and torch.equal(b.cpu(), torch.manual_seed(3) and torch.randn(5))

net = nn.Linear(3, 2).to(GPU)
torch.save(net.state_dict(), "net.pt")
for where in (None, GPU, "cpu"):
    again = torch.load("net.pt", map_location=where)
    assert torch.equal(again["weight"].cpu(), net.weight.detach().cpu())
    assert again["weight"].device.type == (where or GPU)

def checkpointed(device):
    layer = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).to(device)
    x = torch.randn(3, 4).to(device).requires_grad_()
    torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).sum().backward()
    return x.grad
import torch.utils.checkpoint
same(checkpointed)
""")


def test_loader_workers_pinned_memory_and_late_copies_to_the_host(on_device):
    on_device("""
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.arange(32.0).view(16, 2))
net = nn.Linear(2, 1).to(GPU)
D.synchronize()
total = 0
for (x,) in DataLoader(data, batch_size=4, num_workers=2, pin_memory=True):
    assert x.is_pinned()
    total += x.to(GPU, non_blocking=True).sum()
assert total.item() == 496

host = torch.zeros(8).pin_memory()
source = torch.arange(8.0, device=GPU)
with held():
    source.add_(1)
    host.copy_(source, non_blocking=True)
    assert host.sum() == 0
D.synchronize()
assert host.sum() == 36
""")


def test_fork_and_exit(on_device):
    """A child of fork cannot use the device, and says so; whoever exits with work pending exits."""
    done = on_device("""
x = torch.ones(1000, device=GPU)
D.synchronize()
faulthandler.cancel_dump_traceback_later()  # a child would wait for its thread
child = os.fork()
if child == 0:
    try:
        x + 1
        os._exit(1)
    except RuntimeError as error:
        assert "fork" in str(error)
    del x
    assert D._is_in_bad_fork()
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
hold()
for _ in range(100):
    x.add_(1)
print("end")
sys.exit(3)
""", status=3)
    assert done.stdout == "end\n"


def test_cuda_stays_unavailable(on_device):
    done = on_device("""
assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
torch.manual_seed(0)
assert torch.accelerator.current_accelerator().type == GPU
try:
    torch.ones(1, device="cuda")
except RuntimeError as error:
    print("refused")
assert D.current_stream().native_handle in (0, None) and torch.Stream(device=GPU).native_handle != 0
""")
    assert done.stdout == "refused\n" and "CUDA" not in done.stderr


def test_listeners_hear_each_operator_once(on_device):
    """As on a GPU nothing is called below a kernel: neither modes nor profilers see the work on shadows."""
    on_device("""
from torch.utils._python_dispatch import TorchDispatchMode
seen = []
class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        seen.append(str(function))
        return function(*args, **(kwargs or {}))
x, w = torch.randn(2, 3, 6, 6, device=GPU), torch.randn(4, 3, 3, 3, device=GPU)
with Mode():
    torch._foreach_add([x, x], 1.0)
    F.conv2d(x, w)
    x + 1
assert seen == ["aten._foreach_add.Scalar", "aten.convolution.default", "aten.add.Tensor"], seen
from torch.profiler import profile
with profile() as p:
    torch._foreach_add_([x, x], 1.0)
    x.add_(1)
    y = x + 1
    x.cpu()
names = [event.name for event in p.events()]
assert [n for n in names if n.startswith("aten::")] == [
    "aten::_foreach_add_", "aten::add_", "aten::add", "aten::to", "aten::_to_copy", "aten::empty_strided",
    "aten::copy_"], names
""")
