"""Makes torch know the device "fakegpu": import this, and x.to("fakegpu"), torch.fakegpu and all that follow work.

Asynchronous like a GPU: an operator's bytes reach device memory when its stream gets there. hold() and release() make
that late at will, FAKEGPU_DELAY_US or set_delay() slow. Values are those that operators have in the order in which they
were given, whatever their streams; only reads (item, copies to the CPU) see what a stream has not done yet.

Environment: NUMSAN_BUILD, the build folder with the fake libcuda.so.1; FAKEGPU_CACHE, where the extension is compiled
to; FAKEGPU_DEVICES, how many devices there are (2); FAKEGPU_KERNELS=1, operators launch kernels that have names. The
fake has to be the first libcuda.so.1 of the process.
"""
import atexit
import contextlib
import ctypes
import fcntl
import os
import pathlib
import subprocess
import sys
import types
import warnings

import torch

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parents[2]
BUILD = pathlib.Path(os.environ.get("NUMSAN_BUILD", REPO / "build")).resolve()
DRIVER = BUILD / "fakes"
CACHE = pathlib.Path(os.environ.get("FAKEGPU_CACHE", BUILD / "cache" / "tests"))
NAME = "fakegpu"


def _cuda_headers():
    """The folder of cuda.h: that of CMake's build, or the one that torch came with."""
    cache = BUILD / "CMakeCache.txt"
    if cache.exists():
        for line in cache.read_text().splitlines():
            name, _, folder = line.partition("=")
            if name.startswith("NUMSAN_FAKE_CUDA_HEADERS:") and folder:
                return folder
    found = sorted(pathlib.Path(torch.__file__).parents[1].glob("nvidia/*/include/cuda.h"))
    if not found:
        raise FileNotFoundError(f"no cuda.h: {cache} does not say where, and torch brought none")
    return found[0].parent


def library():
    """The compiled extension; compiled now if it is older than its sources, by one process at a time."""
    folder = CACHE / f"torch_device-{torch.__version__}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _compile(folder)


def _compile(folder):
    built = folder / "libnumsan_test_device.so"
    sources = sorted(HERE.glob("*.cpp"))
    newest = max(path.stat().st_mtime for path in (*sources, *HERE.glob("*.h"), pathlib.Path(__file__)))
    if built.exists() and built.stat().st_mtime >= newest:
        return built
    root = pathlib.Path(torch.__file__).parent
    partial = folder / f"device.{os.getpid()}"
    # As one source: torch's headers take longer than all that is ours.
    subprocess.run(["g++", "-std=c++20", "-O1", "-g1", "-fPIC", "-shared", "-Wall", "-Wextra", f"-I{REPO}",
                    f"-isystem{root}/include", f"-isystem{root}/include/torch/csrc/api/include",
                    f"-isystem{_cuda_headers()}", *(f"-include{source}" for source in sources),
                    "-x", "c++", "/dev/null", "-o", partial, f"-L{root}/lib", f"-Wl,-rpath,{root}/lib",
                    "-Wl,--no-as-needed", "-ltorch_cpu", "-lc10", f"-L{DRIVER}", f"-Wl,-rpath,{DRIVER}",
                    "-l:libcuda.so.1"], check=True)
    partial.replace(built)
    return built


def _load():
    ctypes.CDLL(DRIVER / "libcuda.so.1")
    with warnings.catch_warnings():  # torch's own CUDA looks once, misses much in the fake, and would say so
        warnings.simplefilter("ignore")
        if torch.cuda.is_available():
            raise RuntimeError("a CUDA driver was loaded before the fake one")
    torch.ops.load_library(library())
    loaded = ctypes.CDLL(library(), mode=ctypes.RTLD_GLOBAL)  # the driver finds kernels by name
    loaded.fakegpu_hold.argtypes = [ctypes.c_int, ctypes.c_int64]
    loaded.fakegpu_peek.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    for name in ("fakegpu_memory_allocated", "fakegpu_blocks_reused", "fakegpu_unequal_bytes"):
        getattr(loaded, name).restype = ctypes.c_size_t
    return loaded


_C = _load()


def index_of(device=None):
    """The index of a device given as index, name, torch.device or None for the current one."""
    if device is None:
        return _C.fakegpu_current_device()
    if not isinstance(device, int):
        device = torch.device(device).index
        return _C.fakegpu_current_device() if device is None else device
    return device


def set_device(device):
    torch.accelerator.set_device_index(index_of(device))


def current_stream(device=None):
    return torch.accelerator.current_stream(torch.device(NAME, index_of(device)))


def default_stream(device=None):
    current = current_stream(device)
    return torch.Stream(stream_id=0, device_index=current.device_index, device_type=current.device_type)


def synchronize(device=None):
    torch.accelerator.synchronize(torch.device(NAME, index_of(device)))


def get_rng_state(device=NAME):
    return torch.ops.fakegpu.rng_state(index_of(device))


def set_rng_state(new_state, device=NAME):
    torch.ops.fakegpu.set_rng_state(index_of(device), new_state)


def manual_seed(seed):
    torch.ops.fakegpu.manual_seed(index_of(), seed)


def manual_seed_all(seed):
    for device in range(_C.fakegpu_device_count()):
        torch.ops.fakegpu.manual_seed(device, seed)


def hold(stream=None):
    """The stream (default: the current one) runs nothing that it is given from now on, until release()."""
    stream = stream or current_stream()
    _C.fakegpu_hold(stream.device_index, stream.stream_id)


def release():
    """Lets all held streams go on."""
    _C.fakegpu_release()


@contextlib.contextmanager
def held(stream=None):
    """Holds a stream inside the with block."""
    hold(stream)
    try:
        yield
    finally:
        release()


def peek(tensor):
    """A CPU copy of the contiguous `tensor` as device memory is now, without waiting for its stream."""
    if not tensor.is_contiguous():
        raise ValueError("peek needs a contiguous tensor")
    result = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    _C.fakegpu_peek(tensor.data_ptr(), result.data_ptr(), result.numel() * result.element_size())
    return result


def unequal_bytes():
    """Waits for all streams; bytes of device memory that are not what operators wrote. 0, or this device has a bug."""
    return _C.fakegpu_unequal_bytes()


class DeviceContext:
    """with torch.fakegpu.device(1): ..."""

    def __init__(self, device):
        self.index, self.before = index_of(device), None

    def __enter__(self):
        self.before = index_of()
        set_device(self.index)

    def __exit__(self, *_):
        set_device(self.before)


def _module():
    module = types.ModuleType(f"torch.{NAME}", __doc__)
    own = (current_stream, default_stream, get_rng_state, hold, held, manual_seed, manual_seed_all, peek, release,
           set_device, set_rng_state, synchronize, unequal_bytes)
    for function in own:
        setattr(module, function.__name__, function)
    module.device = DeviceContext
    module.Stream, module.Event = torch.Stream, torch.Event
    module.stream = lambda stream: stream if stream is not None else contextlib.nullcontext()
    module.is_available = lambda: _C.fakegpu_device_count() > 0
    module.is_initialized = lambda: True
    module.device_count = lambda: _C.fakegpu_device_count()
    module.current_device = lambda: _C.fakegpu_current_device()
    module._lazy_init = lambda: None
    module._is_in_bad_fork = lambda: bool(_C.fakegpu_in_forked_child())
    module.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]
    module.is_bf16_supported = lambda: True
    module.set_delay = lambda microseconds: _C.fakegpu_set_delay(microseconds)
    module.memory_allocated = lambda device=None: _C.fakegpu_memory_allocated(index_of(device))
    module.blocks_reused = lambda: _C.fakegpu_blocks_reused()
    module.empty_cache = lambda: _C.fakegpu_empty_cache()
    module.get_rng_state_all = lambda: [get_rng_state(i) for i in range(module.device_count())]
    return module


def _finish(process):
    """Before the interpreter goes the streams run dry, as nothing that they still have to do may outlive it."""
    if os.getpid() == process:
        release()
        _C.fakegpu_synchronize_all()


def _register():
    torch.utils.rename_privateuse1_backend(NAME)
    _C.fakegpu_register()
    module = _module()
    torch._register_device_module(NAME, module)
    sys.modules[f"torch.{NAME}"] = module
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    atexit.register(_finish, os.getpid())


_register()
