"""A recording of a real program makes the report of its run again, without torch; anything else is refused."""
import os
import pathlib
import re
import struct
import subprocess
import sys
import zlib

import pytest

import run_numsan
from nightly import in_ci

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import recordings  # noqa: E402

pytestmark = pytest.mark.xdist_group("record")  # one run of a victim is shared
PROGRAMS = HERE.parent / "programs"
SUITE = HERE.parent / "suite"
VICTIM = "log_of_negative/victim.py"
HEADER = len("NUMSAN-RECORDING") + 1

# What each of them adds to what a recording must hold.
RECORDED = {
    VICTIM: "a birth in the forward pass",
    "log_of_negative/twin.py": "a healthy run",
    "function_backward/victim.py": "a birth in the backward pass, and the forward line that it goes back to",
    "root_under_loss_scaler/victim.py": "what a loss scaler catches",
    "adam_after_one_bad_batch/victim.py": "state of an optimizer, by name",
    "average_in_bfloat16/victim.py": "elements that are read one by one",
    "loader_worker/victim.py": "notes of forked workers",
    "norm_in_submodule/victim.py": "modules, by name",
    "hand_written_update/victim.py": "steps that no optimizer announces",
}


def record(program, folder, **options):
    recording = folder / "run.rec"
    options = {"record": recording, **options}
    return run_numsan.run(program, options=options, cwd=folder), recording


def check(done, recording):
    again = recordings.replay(recording)
    assert again.returncode == 0, f"{again.describe()}\n{done.describe()}"
    assert "no answer" not in again.stdout, again.describe()
    assert recordings.comparable(again.report) == recordings.comparable(done.report), again.describe()
    run_numsan.validate(again.report)
    return again


@pytest.fixture(scope="module")
def of_victim(warm, tmp_path_factory):
    """A run of log_of_negative/victim.py, and its recording."""
    return record(PROGRAMS / VICTIM, tmp_path_factory.mktemp("recorded"))


IN_CI = (VICTIM, "log_of_negative/twin.py", "function_backward/victim.py", "loader_worker/victim.py",
         "hand_written_update/victim.py")


@pytest.mark.parametrize("program", in_ci(RECORDED, *IN_CI))
def test_the_same_report(program, of_victim, tmp_path):
    done, recording = of_victim if program == VICTIM else record(PROGRAMS / program, tmp_path)
    assert done.returncode == 0 and done.report is not None, done.describe()
    assert bool(done.findings) == program.endswith("victim.py"), done.describe()
    check(done, recording)


def test_values_that_go_nowhere(warm, tmp_path):
    done, recording = record(SUITE / "controls/q25_winsorised_z_scores.py", tmp_path, escape="any")
    assert [finding["severity"] for finding in done.findings] == ["info"], done.describe()
    again = check(done, recording)
    assert again.report["findings"][0]["escape"]["last"]["fate"] == "masked", again.describe()


@pytest.mark.parametrize("tier", in_ci(["sentinel", "boundary"], "sentinel"))
def test_a_look_back(tier, warm, tmp_path):
    done, recording = record(PROGRAMS / "log_of_negative" / "victim.py", tmp_path, tier=tier)
    assert done.findings, done.describe()
    check(done, recording)


def test_integers_that_wrapped_around(warm, tmp_path):
    done, recording = record(SUITE / "programs" / "p34_nanosecond_square.py", tmp_path)
    assert done.findings, done.describe()
    check(done, recording)


def test_the_program_is_left_alone(of_victim):
    done, _ = of_victim
    plain = run_numsan.run_forked(PROGRAMS / VICTIM)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.describe()


def test_a_halted_run(warm, tmp_path):
    done, recording = record(PROGRAMS / "log_of_negative" / "victim.py", tmp_path, halt=1)
    assert done.returncode == 66 and len(done.findings) == 1, done.describe()
    check(done, recording)


RANK = """
import os, sys
import torch
import torch.distributed as dist
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x = torch.rand(8, 4)
    if rank == 1 and step == 1:
        x = torch.log(x - 2)
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
"""


def test_each_rank_has_its_recording(warm, tmp_path):
    program = tmp_path / "train.py"
    program.write_text(RANK)
    processes = []
    for rank in range(2):
        command, environment = run_numsan.attached(
            [run_numsan.PYTHON, program, tmp_path / "store"], report=tmp_path / "report-%r.json",
            options={"record": tmp_path / "rank-%r.rec"}, env={"RANK": str(rank), "WORLD_SIZE": "2"})
        processes.append(subprocess.Popen(command, env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, text=True))
    for process in processes:
        _, stderr = process.communicate(timeout=300)
        assert process.returncode == 0, stderr[-4000:]
    for rank in range(2):
        again = recordings.replay(tmp_path / f"rank-{rank}.rec")
        assert again.returncode == 0, again.describe()
        report = run_numsan.read_report(tmp_path / f"report-{rank}.json")
        assert report["findings"], rank
        assert recordings.comparable(again.report) == recordings.comparable(report)


THREADS = """
import threading
import torch
def work(seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(200):
        x = torch.rand(16, generator=generator, requires_grad=True)
        (x * 2 if seed else torch.log(x - 2)).sum().backward()
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_threads_at_once(warm, tmp_path):
    program = tmp_path / "train.py"
    program.write_text(THREADS)
    done, recording = record(program, tmp_path)
    assert done.returncode == 0 and done.findings, done.describe()
    check(done, recording)


@pytest.fixture(scope="module")
def recorded(of_victim):
    done, recording = of_victim
    assert done.findings, done.describe()
    return recording


def blocks(recording):
    """(offset, bytes when inflated) of each block."""
    data, at, found = recording.read_bytes(), HEADER, []
    while at < len(data):
        stored, plain, check_sum = struct.unpack_from("<III", data, at + 1)
        deflated = data[at + 13:at + 13 + stored]
        assert data[at:at + 1] == b"B" and zlib.crc32(deflated) == check_sum
        found.append((at, zlib.decompress(deflated)))
        assert len(found[-1][1]) == plain
        at += 13 + stored
    return found


def test_another_report_is_a_difference(recorded, tmp_path):
    """The run's own report in the file says something else: of another version of numsan, for example."""
    changed = tmp_path / "changed.rec"
    made = recorded.read_bytes()[:HEADER]
    for _, plain in blocks(recorded):
        deflated = zlib.compress(plain.replace(b'"op": "aten::log"', b'"op": "aten::lag"'))
        made += b"B" + struct.pack("<III", len(deflated), len(plain), zlib.crc32(deflated)) + deflated
    changed.write_bytes(made)
    again = recordings.replay(changed)
    assert again.returncode == 1, again.describe()
    assert 'findings/0/op: "aten::lag", now "aten::log"' in again.stdout, again.describe()


def test_a_damaged_byte_is_named(recorded, tmp_path):
    damaged = tmp_path / "damaged.rec"
    data = bytearray(recorded.read_bytes())
    at = blocks(recorded)[-1][0]
    data[at + 20] ^= 1
    damaged.write_bytes(data)
    again = recordings.replay(damaged)
    assert again.returncode == 2, again.describe()
    assert again.stderr == (f"numsan: {damaged}: byte {at}: the block that begins here is damaged: "
                            "its checksum does not agree\n"), again.describe()


@pytest.mark.parametrize("content, said", [
    (b"", "byte 0: the file ends within its header"),
    (b"import torch\n", "byte 0: not a recording of numsan"),
    (b"NUMSAN-RECORDING\x07", "byte 16: a recording of version 7; this numsan reads version 5"),
    (b"NUMSAN-RECORDING\x05", "byte 17: the block that begins here is damaged: it ends before the run's facts"),
])
def test_what_is_no_recording_is_refused(content, said, build, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(content)
    again = recordings.replay(file)
    assert (again.returncode, again.stderr) == (2, f"numsan: {file}: {said}\n"), again.describe()


def test_a_missing_file_is_named(build, tmp_path):
    again = recordings.replay(tmp_path / "none.rec")
    assert again.returncode == 2 and f"{tmp_path / 'none.rec'}: cannot be read: No such file" in again.stderr


KILLED = """
import os, signal
import torch
for step in range(4000):
    torch.log(torch.rand(4) + 1).sum().item()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_its_beginning(warm, tmp_path):
    program = tmp_path / "train.py"
    program.write_text(KILLED)
    done, recording = record(program, tmp_path)
    assert done.returncode == -9, done.describe()
    again = recordings.replay(recording)
    assert again.returncode == 2 and "the recording ends before the run did" in again.stderr, again.describe()
    assert again.report["coverage"]["ops"] > 0, again.describe()


def test_escapes_of_the_path(warm, tmp_path):
    program = tmp_path / "train.py"
    program.write_text("import torch\nprint(torch.ones(2).sum().item())\n")
    done = run_numsan.run(program, options={"record": tmp_path / "run-%p-%r.rec"}, cwd=tmp_path)
    names = [path.name for path in tmp_path.glob("*.rec")]
    assert len(names) == 1 and re.fullmatch(r"run-\d+-0\.rec", names[0]), (names, done.describe())
    check(done, tmp_path / names[0])


def test_a_path_that_cannot_be_written_is_one_line(warm, tmp_path):
    program = tmp_path / "train.py"
    program.write_text("import torch\nprint(torch.ones(2).sum().item())\n")
    done = run_numsan.run(program, options={"record": tmp_path / "missing" / "run.rec"}, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "2.0\n"), done.describe()
    assert done.stderr == (f"numsan: record: cannot write {tmp_path / 'missing' / 'run.rec'}: "
                           f"{os.strerror(2)}\n"), done.describe()


def test_nothing_is_recorded_unasked(warm, tmp_path):
    program = tmp_path / "train.py"
    program.write_text("import torch\nprint(torch.ones(2).sum().item())\n")
    run_numsan.run(program, cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "train.py"]
