#!/usr/bin/env python3
"""What a scan costs on a GPU: its rate by size, type, layout and batch beside a device copy, CUB, Thrust and
`torch.isfinite().all()` in the same turns, what it costs where every value is bad, and what it costs the host's thread.
Prints JSON.

usage: cuda_scan.py [--build FOLDER] [--device cuda|fakegpu] [--turns N] [--smoke] [--out FILE]

A turn records two events around some ops of one subject, behind a pause of the stream that lets the host run ahead.
Up to 64 tensors take turns, so that from 1 MB on they do not all lie in L2. Rates count bytes read; of the copy, bytes
read and written. A copy is one of dense memory, also where rows have gaps between them. `fakegpu` is the test device
(tests/fakes): its times mean nothing, it shows that this program works.
"""
import argparse
import ctypes
import json
import os
import pathlib
import sys
import time
from dataclasses import asdict, dataclass

import torch

import turns

ROOT = pathlib.Path(__file__).resolve().parents[2]
KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
SIZES = (KB, 16 * KB, 256 * KB, MB, 4 * MB, 16 * MB, 25 * MB, 64 * MB, 256 * MB, GB)
TYPES = ("float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz",
         "float8_e5m2fnuz", "complex64", "complex128")
BATCHES = (1, 8, 56)
PEER_TYPES = {"float32": 0, "float16": 1, "bfloat16": 2}
CYCLES_PER_SECOND = 2e9
QUEUE = 512  # launches that a driver takes without waiting for the first
BETWEEN = (MB, 64 * MB)  # sizes at which every type is measured
TARGETS = (MB, 25 * MB, 64 * MB)
ROW = 4 * KB  # of a tensor with gaps, which are as long
FINITE, NAN = 0x3c, 0xff  # a byte that makes a finite number of every type, and one that makes a NaN of float32


@dataclass(frozen=True)
class Case:
    type: str
    bytes: int
    batch: int = 1
    layout: str = "dense"  # or rows: of ROW bytes, with gaps of the same length between them
    values: str = "finite"  # or nan: all of them, as in a run that has diverged

    def span(self):
        """Bytes from a tensor's begin to its end."""
        return self.bytes * (2 if self.layout == "rows" else 1)

    def shaped(self, tensor):
        """The tensor in flat memory of span() bytes."""
        if self.layout == "dense":
            return tensor
        return tensor.view(-1, 2 * ROW // tensor.element_size())[:, :ROW // tensor.element_size()]


class Scanner:
    """libnumsan_scan_bench.so on the current stream of a device."""

    def __init__(self, build, stream):
        self.library = ctypes.CDLL(str(build / "bench/libnumsan_scan_bench.so"))
        self.library.numsan_bench_open.restype = ctypes.c_void_p
        self.library.numsan_bench_scan.restype = ctypes.c_double
        self.library.numsan_bench_dtype.argtypes = [ctypes.c_char_p]
        self.stream = ctypes.c_void_p(stream)
        reason = ctypes.create_string_buffer(256)
        handle = self.library.numsan_bench_open(0, self.stream, reason, len(reason))
        if not handle:
            raise SystemExit(f"cuda_scan: no scanner of this device: {reason.value.decode()}")
        self.handle = ctypes.c_void_p(handle)

    def scan(self, tensors, count, repeats, deferred=False):
        """Nanoseconds of the host's thread per op of `count` outputs."""
        kind = self.library.numsan_bench_dtype(str(tensors[0].dtype).removeprefix("torch.").encode())
        data = (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
        rows, elements = tensors[0].shape if tensors[0].dim() == 2 else (1, tensors[0].numel())
        shape = map(ctypes.c_int64, (rows, elements, tensors[0].stride(0) if rows > 1 else elements))
        return self.library.numsan_bench_scan(self.handle, 0, self.stream, data, len(tensors), count, *shape, kind,
                                              ctypes.c_int64(repeats), int(deferred))

    def counters(self):
        values = (ctypes.c_uint64 * 4)()
        self.library.numsan_bench_counters(self.handle, values)
        text = ctypes.create_string_buffer(1024)
        self.library.numsan_bench_skipped(self.handle, text, len(text))
        return {**dict(zip(("scanned", "bytes", "launches", "skipped"), values)), "why": text.value.decode()}

    def hits(self):
        return self.library.numsan_bench_hits(self.handle)


class Peers:
    """libnumsan_peers.so; absent on the test device, which runs no kernels but numsan's."""

    def __init__(self, build, stream):
        self.library = ctypes.CDLL(str(build / "bench/libnumsan_peers.so"))
        self.stream, self.scratch = ctypes.c_void_p(stream), {}
        self.answer = torch.zeros(1, dtype=torch.int32, device="cuda")

    def cub(self, tensor):
        kind, data = PEER_TYPES[str(tensor.dtype).removeprefix("torch.")], ctypes.c_void_p(tensor.data_ptr())

        def call(scratch, size):
            failed = self.library.numsan_peer_cub(scratch, ctypes.byref(size), data, ctypes.c_int64(tensor.numel()),
                                                  kind, ctypes.c_void_p(self.answer.data_ptr()), self.stream)
            if failed:
                raise SystemExit(f"cuda_scan: CUB failed with CUDA error {failed}")

        key = (tensor.dtype, tensor.numel())
        if key not in self.scratch:
            size = ctypes.c_size_t(0)
            call(None, size)
            self.scratch[key] = torch.empty(max(size.value, 1), dtype=torch.uint8, device="cuda"), size
        scratch, size = self.scratch[key]
        call(ctypes.c_void_p(scratch.data_ptr()), size)

    def thrust(self, tensor):
        kind = PEER_TYPES[str(tensor.dtype).removeprefix("torch.")]
        found = self.library.numsan_peer_thrust(ctypes.c_void_p(tensor.data_ptr()), ctypes.c_int64(tensor.numel()),
                                                kind, self.stream)
        if found != 0:
            raise SystemExit(f"cuda_scan: Thrust found {found} in finite memory")


class Clock:
    """Microseconds of the device between two points of its stream; of the host where the device has no such events."""

    def __init__(self, device):
        self.cuda = device == "cuda"
        self.synchronize = torch.cuda.synchronize if self.cuda else torch.get_device_module(device).synchronize

    def measure(self, work, repeats, pause=0.0):
        if not self.cuda:
            started = time.perf_counter()
            for at in range(repeats):
                work(at)
            self.synchronize()
            return (time.perf_counter() - started) * 1e6 / repeats
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if pause > 0:  # the launches are in the queue before the first one runs
            torch.cuda._sleep(int(pause * CYCLES_PER_SECOND))
        begin.record()
        for at in range(repeats):
            work(at)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / repeats


def cut(pool, size, count, kind):
    """`count` tensors of `size` bytes, spread over the pool."""
    step = (len(pool) - size) // max(count - 1, 1) // 256 * 256
    if count > 1 and step < size:
        raise ValueError(f"{count} tensors of {size} bytes do not fit a pool of {len(pool)}")
    return [pool[at * step:at * step + size].view(getattr(torch, kind)) for at in range(count)]


def measure_case(case, pools, scanner, peers, clock, count):
    """One row: {subject: spread of microseconds and ratio to the copy}."""
    pool, target = pools
    kind, size, batch = case.type, case.bytes, case.batch
    pool.fill_(NAN if case.values == "nan" else FINITE)
    tensors = max(batch, min(len(pool) // case.span(), 64) // batch * batch)
    source = [case.shaped(tensor) for tensor in cut(pool, case.span(), tensors, kind)]
    dense, copy = cut(pool, size, tensors, kind), cut(target, size, tensors, kind)
    repeats = max(2, min(100, 256 * MB // (size * batch), QUEUE // batch))
    each = [slice(at % tensors, at % tensors + batch) for at in range(0, repeats * batch, batch)]
    subjects = {"copy": lambda at: [b.copy_(a) for a, b in zip(dense[each[at]], copy[each[at]])],
                "scan": lambda at: scanner.scan(source[each[at]], batch, 1)}
    if kind in PEER_TYPES and peers is not None and case == Case(kind, size, batch):
        subjects["cub"] = lambda at: [peers.cub(tensor) for tensor in source[each[at]]]
        subjects["thrust"] = lambda at: [peers.thrust(tensor) for tensor in source[each[at]]]
    if not kind.startswith("float8"):
        subjects["isfinite"] = lambda at: [torch.isfinite(tensor).all() for tensor in source[each[at]]]
    times = {name: [] for name in subjects}
    pauses, before, hits = {}, scanner.counters(), scanner.hits()
    for name, work in subjects.items():
        clock.measure(work, 2)
        started = time.perf_counter()
        for at in range(repeats):
            work(at)
        pauses[name] = min(1.5 * (time.perf_counter() - started), 0.05)
        clock.synchronize()
        hits += scanner.hits()
    for _ in range(count):
        for name, work in subjects.items():
            times[name].append(clock.measure(work, repeats, pauses[name]))
        hits += scanner.hits()  # as the thread does that reads them
    after = scanner.counters()
    scanned, launches = (after[key] - before[key] for key in ("scanned", "launches"))
    row = {**asdict(case), "subjects": {}, "launches_a_batch": launches * batch / scanned, "scanned": scanned,
           "hits": hits}
    for name, values in times.items():
        moved = size * batch * (2 if name == "copy" else 1)
        rates = [moved / value / 1e3 for value in values]  # GB/s
        copies = [2 * size * batch / value / 1e3 for value in times["copy"]]
        row["subjects"][name] = {"microseconds": turns.spread(values), "gb_per_s": turns.spread(rates),
                                 "of_copy": turns.ratios(rates, copies)}
    return row


def host_costs(pool, scanner, clock, count, repeats):
    """Nanoseconds of the host's thread per op: one output of 4 KB, launches that the queue has room for."""
    tensors, rows = cut(pool, 4 * KB, 64, "float32"), []
    for name, outputs, deferred in (("immediate", 1, False), ("deferred", 1, True), ("immediate, 8 outputs", 8, False)):
        scanner.scan(tensors, outputs, 2, deferred)
        values = []
        for _ in range(count):
            clock.synchronize()
            values.append(scanner.scan(tensors, outputs, repeats, deferred))
        clock.synchronize()
        rows.append({"what": name, "nanoseconds": turns.spread(values)})
    return rows


def cases(smoke):
    """The targets' own come first, should time run out."""
    if smoke:
        return [Case("float32", KB), Case("float32", 64 * KB, 8), Case("float8_e5m2", 64 * KB),
                Case("complex128", 64 * KB, layout="rows"), Case("float32", 64 * KB, values="nan")]
    every = [Case("float32", size) for size in (*TARGETS, *(size for size in SIZES if size not in TARGETS))]
    every += [Case("float32", size, values="nan") for size in TARGETS]
    every += [Case("float32", size, layout="rows") for size in TARGETS]
    every += [Case("float32", size, batch) for size in (KB, 16 * KB, 256 * KB) for batch in BATCHES[1:]]
    return every + [Case(kind, size) for kind in TYPES[1:] for size in BETWEEN]


def wrong(row):
    """What a scan said of values that it should not have; None."""
    expected = row["scanned"] if row["values"] == "nan" else 0
    if row["hits"] == expected:
        return None
    return f"of {row['scanned']} tensors of {row['values']} values {row['hits']} were called bad"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=os.environ.get("NUMSAN_BUILD", ROOT / "build"))
    parser.add_argument("--device", choices=("cuda", "fakegpu"), default="cuda")
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--smoke", action="store_true", help="few small sizes, two turns")
    parser.add_argument("--out", type=pathlib.Path, help="instead of stdout")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("cuda_scan: no CUDA device here", file=sys.stderr)
        return 77
    if options.device == "fakegpu":
        sys.path.insert(0, str(ROOT / "tests/fakes/torch_device"))
        import fakegpu  # noqa: F401
    clock = Clock(options.device)
    turns_taken, size = (2, MB) if options.smoke else (options.turns, GB)
    pools = [torch.full((size,), FINITE, dtype=torch.uint8, device=options.device) for _ in range(2)]
    stream = torch.cuda.current_stream().cuda_stream if clock.cuda else 0
    scanner = Scanner(pathlib.Path(options.build).resolve(), stream)
    peers = Peers(pathlib.Path(options.build).resolve(), stream) if clock.cuda else None
    result = {"device": torch.cuda.get_device_name() if clock.cuda else options.device, "torch": torch.__version__,
              "rates": [measure_case(case, pools, scanner, peers, clock, turns_taken)
                        for case in cases(options.smoke)]}
    pools[0].fill_(FINITE)
    result["host"] = host_costs(pools[0], scanner, clock, turns_taken if options.smoke else 31, 200)
    clock.synchronize()
    result["counters"] = scanner.counters()
    result["wrong"] = [text for text in map(wrong, result["rates"]) if text]
    if hits := scanner.hits():
        result["wrong"].append(f"{hits} tensors of finite values were called bad")
    if result["counters"]["skipped"]:
        result["wrong"].append(f"{result['counters']['skipped']} were not scanned ({result['counters']['why']})")
    text = json.dumps(result, indent=1)
    if options.out:
        options.out.write_text(text + "\n")
    else:
        print(text)
    for text in result["wrong"]:
        print(f"cuda_scan: {text}", file=sys.stderr)
    return 1 if result["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
