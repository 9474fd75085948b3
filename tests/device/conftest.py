"""Programs on the test device, each in a process or a fork of its own: torch takes one such device a process."""
import re
import shutil
import subprocess

import pytest

import device_environment
import forked_runs
import run_numsan


def headers_are_missing():
    """Whether CMake found neither cuda.h nor nvcc, so that there can be no fake driver. False where it said nothing."""
    cache = run_numsan.BUILD / "CMakeCache.txt"
    found = dict(re.findall(r"^(NUMSAN_\w+):\w+=(.*)$", cache.read_text() if cache.exists() else "", re.MULTILINE))
    return (found.get("NUMSAN_FAKE_CUDA_HEADERS") == "" and found.get("NUMSAN_NVCC") == "NUMSAN_NVCC-NOTFOUND"
            and shutil.which("nvcc") is None)


@pytest.fixture(scope="session")
def test_device():
    """Environment of programs that import fakegpu, which is compiled here and not inside a program's time limit."""
    driver = run_numsan.BUILD / "fakes" / "libcuda.so.1"
    if not driver.exists():
        if headers_are_missing():
            pytest.skip("no cuda.h to build the fake CUDA driver with: no nvcc was found, and torch has none in .venv")
        pytest.fail(f"{driver} is missing, which may be only where there is neither nvcc nor cuda.h: "
                    "build first (scripts/build)", pytrace=False)
    environment = run_numsan.plain_environment(device_environment.of_test_device(device_environment.PRELUDE))
    done = subprocess.run([run_numsan.PYTHON, "-c", "import fakegpu"], env=environment, capture_output=True,
                          text=True, timeout=900)
    if done.returncode != 0:
        pytest.fail(f"the test device cannot be built or loaded\n{done.stderr[-6000:]}", pytrace=False)
    return environment


@pytest.fixture(scope="session")
def forks(test_device):
    """Runs programs without numsan in forks of a process that has torch; each loads the device, and its driver, itself.
    `env` is what the device or its driver reads when they are loaded."""
    server = forked_runs.ForkedRuns(run_numsan.PYTHON, test_device)

    def run(program, folder, env=None, timeout=300):
        ended = server.outcome(program, (), folder, {**test_device, **(env or {})}, timeout)
        if ended.status is None:
            pytest.fail(f"no end within {timeout} s\n{ended.stderr[-4000:]}", pytrace=False)
        return subprocess.CompletedProcess([program], ended.status, ended.stdout, ended.stderr)
    yield run
    server.close()


@pytest.fixture
def on_device(forks, tmp_path):
    """Runs the text of a program after prelude.py; fails with all it said unless it exits with `status`."""
    def run(text, env=None, status=0, timeout=300):
        program = tmp_path / "program.py"
        program.write_text("from prelude import *\n" + text)
        done = forks(program, tmp_path, env, timeout)
        assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done
    return run


@pytest.fixture
def bare(forks, tmp_path):
    """Writes a program that begins with prelude.py and runs it without numsan: its path, and how it ended."""
    def run(text, late, status):
        program = tmp_path / "program.py"
        program.write_text("from prelude import *\n" + text)
        done = forks(program, tmp_path, late, 400)
        assert (done.returncode, done.stderr) == (status, ""), done.stderr[-3000:]
        return program, done
    return run


def late_work(delay_us):
    """What the driver reads when it is loaded: how long a kernel takes at least."""
    return {"FAKEGPU_DELAY_US": str(delay_us)}


@pytest.fixture
def watched(test_device, bare, warm, tmp_path):
    """Runs a program after prelude.py without and with numsan, in forks; gives back the latter's result, with a report
    if something was found. Its work takes a while. `clean`: nothing is found, and numsan is seen to have looked."""
    def run(text, delay_us=200, status=0, options=None, clean=False):
        program, without = bare(text, late_work(delay_us), status)
        done = run_numsan.run_watched_fork(program, options=options, env=test_device, late=late_work(delay_us),
                                           cwd=tmp_path, timeout=400, clean=clean)
        assert (done.returncode, done.stdout) == (status, without.stdout), done.describe()
        return done
    return run


@pytest.fixture
def watched_process(test_device, bare, warm, tmp_path):
    """watched, in a process of its own, whose report is written whatever was found."""
    def run(text, delay_us=200, status=0, options=None):
        program, without = bare(text, late_work(delay_us), status)
        done = run_numsan.run(program, options=options, env={**test_device, **late_work(delay_us)}, cwd=tmp_path,
                              timeout=400)
        assert (done.returncode, done.stdout) == (status, without.stdout), done.describe()
        return done
    return run


@pytest.fixture
def attached(test_device, forks, warm, tmp_path):
    """Runs a program without and with numsan: what it said, its report. Exit status and stdout have to be the same."""
    def run(text, env=None, options=None, status=0, silent=True):
        program = tmp_path / "program.py"
        program.write_text(text)
        def process(command, environment):
            return subprocess.run(command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=400)

        command, environment = [run_numsan.PYTHON, str(program)], {**test_device, **(env or {})}
        # A fork does where the driver is loaded as ever, and reads what it should fail when it is.
        forked = text.startswith("from prelude import *") and set(env or {}) <= {"FAKE_CUDA"}
        bare = forks(program, tmp_path, env, 400) if forked else process(command, environment)
        command, environment = run_numsan.attached(command, report=tmp_path / "report.json", env=environment,
                                                   options={"raw": "1", **(options or {})})
        environment["NUMSAN_CACHE"] = str(run_numsan.CACHE)
        done = process(command, environment)
        assert bare.returncode == status and not (silent and bare.stderr), bare.stderr[-3000:]
        assert (done.returncode, done.stdout) == (status, bare.stdout), done.stderr[-3000:]
        report = run_numsan.read_report(tmp_path / "report.json")
        if report is not None:
            run_numsan.validate(report)
        return done.stderr, report
    return run
