"""CUDA programs without torch, on the fake driver: noticed inside cuInit, run as they would without numsan, and their
reports say how far they were looked at."""
import json
import re
import shutil
import signal
import subprocess

import pytest

import run_numsan
from cuda_programs import CUDA, VARIABLE, both, cc, environment, library, program, said_once

PLAIN = CUDA + r"""
int main(void) {
    set_up();
    run(3);
    printf("%d calls inside of cuInit\n", fake_cuda_calls_inside_injection());
    return 7;
}
"""


# What is said of `fill`.
UNSEEN = ("kernels whose names and debug information (-g) do not say what they write: 1 launch not looked at, most of "
          "`fill<<<>>>`")


# ---- the variable ----

def variable_of(folder, command=("env",), options="raw=1", **more):
    env = run_numsan.plain_environment({"LD_PRELOAD": str(run_numsan.LIBRARY), "NUMSAN_OPTIONS": options, **more})
    if VARIABLE not in more:
        env.pop(VARIABLE, None)
    out = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=True).stdout
    return re.findall(rf"^{VARIABLE}=(.*)$", out, re.MULTILINE)


def test_the_variable_names_the_preloaded_library_where_nothing_else_is_set(build, tmp_path):
    assert variable_of(tmp_path) == [str(run_numsan.LIBRARY)]
    assert variable_of(tmp_path, **{VARIABLE: ""}) == [str(run_numsan.LIBRARY)]
    assert variable_of(tmp_path, **{VARIABLE: "/opt/nsys/injection.so"}) == ["/opt/nsys/injection.so"]
    many = {f"VARIABLE_{i}": "x" for i in range(1000)}
    assert variable_of(tmp_path, **many) == [str(run_numsan.LIBRARY)]


def test_the_variable_is_left_alone_where_nothing_is_watched(build, tmp_path):
    assert variable_of(tmp_path, options="tier=off:raw=1") == []
    assert variable_of(tmp_path, options="") == [], "the environment is the program's"
    assert variable_of(tmp_path, options="raw=1:raw=0") == []
    assert variable_of(tmp_path, options="cupti=on") != []
    assert variable_of(tmp_path, NUMSAN_DISABLE="1") == []
    shell = ["sh", "-c", f"test -z \"${VARIABLE}\" && echo {VARIABLE}=none"]
    assert variable_of(tmp_path, shell) == ["none"]


def test_the_program_may_change_its_environment(build, tmp_path):
    changes = cc(tmp_path / "changes", r"""
        #include <stdio.h>
        #include <stdlib.h>
        int main(int argc, char** argv, char** envp) {
            int listed = 0;
            for (char** entry = envp; *entry; entry++) listed++;
            char name[16];
            for (int i = 0; i < 600; i++) { sprintf(name, "MORE_%d", i); setenv(name, "x", 1); }
            printf("%d %d\n", argc, listed > 0);
            unsetenv("CUDA_INJECTION64_PATH");
            return !!getenv("CUDA_INJECTION64_PATH") + system("env | grep -c ^MORE_");
        }""")
    done = both(changes, tmp_path)
    assert done.returncode == 0 and done.stderr == "", done.describe()


# ---- what a report says ----

@pytest.mark.parametrize("launcher", ["run", "preload"])
def test_a_plain_program_is_looked_at_as_far_as_names_say(launcher, cupti, tmp_path):
    done = both(program(tmp_path, PLAIN), tmp_path, launcher=launcher)
    assert done.returncode == 7 and "0 calls inside of cuInit" in done.stdout, done.describe()
    assert said_once(done, UNSEEN), done.describe()
    coverage = done.report["coverage"]
    assert done.report["verdict"] == "incomplete" and coverage["scanned"] > 0
    assert coverage["kernels"] == {"launches": 4, "by_name": {"scale(float*, int)": 3, "fill": 1}}
    assert len(coverage["blind_spots"]) == 1 and done.report["run"]["exit_status"] == 7


@pytest.mark.parametrize("options, env, reason", [
    ({"cupti": "off"}, {}, "cupti=off"),
    ({}, {"FAKE_CUPTI": "held=Nsight Systems"}, "CUPTI is taken by Nsight Systems"),
    ({}, {"FAKE_CUPTI": "cuptiSubscribe_v2=35"}, "CUPTI refused: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)"),
    ({}, {"FAKE_CUPTI": "cuptiEnableCallback=999"}, "CUPTI refused: CUPTI_ERROR_UNKNOWN (999)"),
    ({}, {"FAKE_CUPTI": "cuptiSubscribe_v2=4711"}, "CUPTI refused: error (4711)"),
], ids=["off", "taken", "not permitted", "enable", "unknown"])
def test_without_cupti_it_says_why_nothing_was_counted(options, env, reason, cupti, tmp_path):
    done = both(program(tmp_path, PLAIN), tmp_path, options=options, **env)
    assert said_once(done, f"kernels were not counted: {reason}"), done.describe()
    assert done.report["verdict"] == "incomplete" and "kernels" not in done.report["coverage"]


def test_another_version_of_cupti_is_left_alone(cupti, tmp_path):
    old = library(tmp_path, "libcupti.so.12", "int cuptiSubscribe(void) { return 0; }", "-Wl,-soname,libcupti.so.12")
    done = both(program(tmp_path, PLAIN, "-Wl,--no-as-needed", str(old), f"-Wl,-rpath,{tmp_path}"), tmp_path)
    assert said_once(done, f"another version of CUPTI is loaded: {old}"), done.describe()


def test_a_program_that_launches_nothing_leaves_nothing(cupti, tmp_path):
    idle = program(tmp_path, CUDA + "int main(void) { set_up(); return fake_cuda_calls_inside_injection(); }")
    done = both(idle, tmp_path)
    assert (done.returncode, done.stderr, done.report) == (0, "", None), done.describe()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program", "program.c"]


def test_a_launch_that_fails_is_none(cupti, tmp_path):
    refused = program(tmp_path, CUDA + r"""
        int main(void) {
            void* arguments[] = {&data};
            set_up();
            printf("%d\n", cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 64, 0, arguments, 0));
            run(1);
            return 0;
        }""")
    assert both(refused, tmp_path).report["coverage"]["kernels"]["launches"] == 2


def test_graphs_are_counted(cupti, tmp_path):
    graphs = program(tmp_path, CUDA + r"""
        int main(void) {
            CUstream stream; CUgraph graph; CUgraphExec exec;
            void* arguments[] = {&data};
            CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
                                     .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
            set_up();
            TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
            config.hStream = stream;
            TRY(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
            TRY(cuLaunchKernelEx(&config, scale, arguments, 0));
            TRY(cuStreamEndCapture(stream, &graph));
            TRY(cuGraphInstantiate(&exec, graph, 0));
            for (int i = 0; i < 5; i++) TRY(cuGraphLaunch(exec, stream));
            TRY(cuStreamSynchronize(stream));
            return 0;
        }""")
    by_name = both(graphs, tmp_path).report["coverage"]["kernels"]["by_name"]
    assert by_name == {"(a CUDA graph)": 5, "scale(float*, int)": 1}


def test_threads_that_start_cuda_together(cupti, tmp_path):
    threads = program(tmp_path, CUDA + r"""
        #include <pthread.h>
        static void* start(void* p) { TRY(cuInit(0)); return p; }
        int main(void) {
            pthread_t all[16];
            for (int i = 0; i < 16; i++) pthread_create(&all[i], 0, start, 0);
            for (int i = 0; i < 16; i++) pthread_join(all[i], 0);
            set_up();
            run(2);
            return 0;
        }""")
    done = both(threads, tmp_path)
    assert said_once(done, UNSEEN), done.describe()


# ---- processes ----

def test_a_child_without_the_preload_is_left_alone(cupti, tmp_path):
    """It inherits the variable: its driver loads the library, which does nothing there."""
    plain = program(tmp_path, PLAIN)
    bare = run_numsan.run_plain_command([plain], cwd=tmp_path, env=environment())
    done = run_numsan.run_plain_command([plain], cwd=tmp_path, env=environment(**{VARIABLE: run_numsan.LIBRARY}))
    assert (done.returncode, done.stdout, done.stderr) == (7, bare.stdout, ""), done.describe()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program", "program.c"]


FORKS = CUDA + r"""
#include <sys/wait.h>
static int child(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0) { CHILD; exit(0); }
    waitpid(pid, &status, 0);
    return status;
}
"""


def test_a_fork_of_a_process_with_cuda_reports_once(cupti, tmp_path):
    forks = program(tmp_path, FORKS.replace("CHILD", "puts(\"child\")") +
                    "int main(void) { set_up(); run(1); int bad = child(); run(1); return bad; }")
    done = both(forks, tmp_path, options={"report": str(tmp_path / "r-%p.json")})
    assert said_once(done, UNSEEN.replace("1 launch", "2 launches")), done.describe()
    assert len(list(tmp_path.glob("r-*.json"))) == 1


def test_a_forked_child_that_starts_cuda_itself_reports(cupti, tmp_path):
    forks = program(tmp_path, FORKS.replace("CHILD", "set_up(); run(1)") + "int main(void) { return child(); }")
    done = both(forks, tmp_path, options={"report": str(tmp_path / "r-%p.json")})
    assert said_once(done, UNSEEN), done.describe()
    assert len(list(tmp_path.glob("r-*.json"))) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_a_process_killed_in_mid_launch_leaves_a_report(number, cupti, tmp_path):
    """It launches until it is killed: the report is the one of its start, whole and incomplete."""
    endless = program(tmp_path, CUDA + r"""
        #include <sys/wait.h>
        int main(void) {
            set_up();
            if (fork() == 0) exit(0);  /* a child that ends has no say in the report */
            wait(0);
            for (int i = 0;; i++) {
                launch(scale);
                if (i == 1000) { puts("on its way"); fflush(stdout); }
                if (i % 100 == 0) TRY(cuCtxSynchronize());
            }
        }""")
    argv, env = run_numsan.attached([endless], report=str(tmp_path / "report.json"), options={"raw": "1"},
                                    env=environment())
    process = subprocess.Popen(argv, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "on its way\n"
        process.send_signal(number)
        assert process.wait(timeout=60) == -number
    finally:
        process.kill()
        process.communicate()
    report = json.loads((tmp_path / "report.json").read_text())
    run_numsan.validate(report)
    assert (report["verdict"], report["run"]["ended"], report["run"]["exit_status"]) == ("incomplete", None, None)
    assert "the run had not ended when this was written" in report["coverage"]["blind_spots"][0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program", "program.c", "report.json"]


# ---- other tools ----

OTHER = r"""
#include <stdio.h>
int InitializeInjection(void) { puts("their injection"); fflush(stdout); return 1; }
"""


def test_another_injection_library_stays_and_cuda_is_noticed_all_the_same(cupti, tmp_path):
    theirs = library(tmp_path, "libtheirs.so", OTHER)
    plain = program(tmp_path, PLAIN)
    done = both(plain, tmp_path, **{VARIABLE: theirs})
    assert done.stdout.startswith("their injection\n"), done.describe()
    assert said_once(done, f"kernels were not counted: {VARIABLE} names the library of another tool, {theirs}")
    assert done.report["verdict"] == "incomplete"
    done = both(plain, tmp_path, options={"cupti": "on"}, **{VARIABLE: theirs})
    assert said_once(done, UNSEEN), done.describe()


def test_an_injection_library_that_is_missing(cupti, tmp_path):
    done = both(program(tmp_path, PLAIN), tmp_path, **{VARIABLE: tmp_path / "nothing.so"})
    assert done.report["verdict"] == "incomplete" and done.stderr.count("\n") == 1, done.describe()


def test_another_copy_of_numsan_is_no_stranger(cupti, tmp_path):
    copy = tmp_path / "copy" / "libnumsan.so"
    copy.parent.mkdir()
    shutil.copy(run_numsan.LIBRARY, copy)
    done = both(program(tmp_path, PLAIN), tmp_path, **{VARIABLE: copy})
    assert said_once(done, UNSEEN), done.describe()
    done = both(program(tmp_path, PLAIN), tmp_path, LD_PRELOAD=copy)
    assert UNSEEN in done.stderr, done.describe()


# ---- drivers that are no good ----

@pytest.mark.parametrize("script, status", [
    ("devices=0", "100"), ("cuInit=100", "100"), ("cuInit=999", "999"), ("cuDevicePrimaryCtxRetain=800", "800"),
    ("cuMemAlloc=2", "2"), ("cuModuleLoadData=209", "209"), ("cuLaunchKernel=719:3", "719"),
], ids=["no device", "no device in cuInit", "broken", "not permitted", "memory", "architecture", "launch"])
def test_errors_of_the_driver_are_the_programs_own(script, status, cupti, tmp_path):
    done = both(program(tmp_path, PLAIN), tmp_path, FAKE_CUDA=script)
    assert done.returncode == 3 and f": {status}\n" in done.stdout, done.describe()
    launched = 3 if "Launch" in script else 0
    if launched:
        assert said_once(done, UNSEEN), done.describe()
    else:
        assert (done.stderr, done.report) == ("", None), done.describe()


def test_an_old_driver_and_a_context_that_goes(cupti, tmp_path):
    resets = program(tmp_path, CUDA + r"""
        int main(void) {
            set_up();
            run(2);
            TRY(cuDevicePrimaryCtxReset(0));
            void* arguments[] = {&data};
            printf("%d\n", cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, 0, arguments, 0));
            return 0;
        }""")
    done = both(resets, tmp_path, FAKE_CUDA="version=11040")
    assert said_once(done, UNSEEN), done.describe()


def test_no_driver(build, tmp_path):
    asks = cc(tmp_path / "asks", r"""
        #include <dlfcn.h>
        #include <stdio.h>
        int main(void) { return puts(dlopen("libcuda.so.1", RTLD_NOW) ? "driver" : "none") < 0; }""", "-ldl")
    folder = tmp_path / "empty"
    folder.mkdir()
    done = both(asks, tmp_path, LD_LIBRARY_PATH=str(folder))
    assert (done.stderr, done.report) == ("", None), done.describe()


def test_a_core_that_is_missing_is_one_line(cupti, tmp_path):
    alone = tmp_path / "alone" / "libnumsan.so"
    alone.parent.mkdir()
    shutil.copy(run_numsan.LIBRARY, alone)
    done = run_numsan.run_plain_command([program(tmp_path, PLAIN)], cwd=tmp_path,
                                        env=environment(LD_PRELOAD=alone, NUMSAN_OPTIONS="raw=1"))
    assert done.returncode == 7 and done.stdout.startswith("8\n"), done.describe()
    assert done.stderr == f"numsan: off: libnumsan_core.so is not beside {alone}\n"
