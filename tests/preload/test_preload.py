"""The preloaded library: programs without torch run as they would without it; the core is loaded when torch appears.

NUMSAN_BUILD names the build folder (default: build beside these tests' folder); libnumsan.so is taken from its lib/.
The core is tests/preload/test_core.c, and torch is an empty libtorch_cpu.so, both compiled here.
"""
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("NUMSAN_BUILD", ROOT / "build"))
LIBRARY = BUILD / "lib" / "libnumsan.so"
CC = os.environ.get("CC", "cc")


def cc(output, *arguments, source=None):
    """Compiles `source`, C text, and returns `output`."""
    output.parent.mkdir(parents=True, exist_ok=True)
    files = []
    if source is not None:
        file = output.with_name(output.name + ".c")
        file.write_text(source)
        files = [str(file)]
    command = [CC, "-O1", "-o", str(output), *files, *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, text=True, env=clean_environment())
    return output


def clean_environment(**more):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("NUMSAN_")}
    environment.update({k: str(v) for k, v in more.items()})
    return environment


def run(command, preload=None, cwd=None, **environment):
    if preload is not None:
        environment["LD_PRELOAD"] = preload
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=cwd, timeout=120,
                          env=clean_environment(**environment))


class Setup:
    """A folder with libnumsan.so, a core that leaves a trace, and a torch that is empty."""

    def __init__(self, folder):
        self.folder = folder
        self.lib = folder / "lib"
        self.lib.mkdir()
        self.preload = self.lib / "libnumsan.so"
        shutil.copy(LIBRARY, self.preload)
        self.core = cc(self.lib / "libnumsan_core.so", "-shared", "-fPIC", f"-I{ROOT}",
                       ROOT / "tests/preload/test_core.c")
        self.torch = folder / "site" / "torch"
        cc(self.torch / "lib" / "libtorch_cpu.so", "-shared", "-fPIC", "-Wl,-soname,libtorch_cpu.so",
           source="int torch_cpu(void) { return 7; }")
        self.extension = cc(self.torch / "_C.cpython-311-x86_64-linux-gnu.so", "-shared", "-fPIC",
                            f"-L{self.torch / 'lib'}", "-Wl,--no-as-needed", "-ltorch_cpu",
                            f"-Wl,-rpath,{self.torch / 'lib'}",
                            source="int torch_cpu(void); int extension(void) { return torch_cpu(); }")
        self.trace_file = folder / "trace"

    def run(self, *command, preload=None, cwd=None, **environment):
        return run(command, preload=str(preload or self.preload), cwd=cwd, NUMSAN_TEST_TRACE=self.trace_file,
                   **environment)

    def trace(self):
        return self.trace_file.read_text().splitlines() if self.trace_file.exists() else []

    def attached(self):
        return [line for line in self.trace() if line.startswith("attach")]


@pytest.fixture
def setup(tmp_path):
    if not LIBRARY.exists():
        pytest.fail(f"{LIBRARY} is not built; set NUMSAN_BUILD")
    return Setup(tmp_path)


# A program that dlopens argv[1], prints errno as set before, then makes one thread.
OPENER = r"""
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
static void* routine(void* p) { return p; }
int main(int argc, char** argv) {
    for (int i = 1; i < argc; i++) {
        errno = 0;
        void* library = dlopen(argv[i], RTLD_NOW);
        if (!library) { puts(dlerror()); return 3; }
        printf("errno %d error %s\n", errno == EDOM, dlerror() ? "some" : "none");
    }
    pthread_t thread;
    void* result = 0;
    if (pthread_create(&thread, 0, routine, argv)) return 4;
    pthread_join(thread, &result);
    return result == argv ? 0 : 5;
}
"""


def opener(folder, *arguments):
    return cc(folder / "opener", *arguments, "-ldl", "-pthread", source=OPENER)


def test_exports_only_what_it_interposes_and_where_others_enter():
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(LIBRARY)], check=True, capture_output=True, text=True)
    names = {line.split()[-1] for line in symbols.stdout.splitlines()}
    assert names == {"dlopen", "dlclose", "pthread_create", "__libc_start_main",
                     "InitializeInjection", "InitializeInjectionNvtx2",
                     "cuptiSubscribe", "cuptiSubscribe_v2", "cuptiUnsubscribe", "cuptiFinalize",
                     # at::getStepCallbacksUnlessEmpty, at::getStepCallbacks, torch::autograd::AccumulateGrad::apply
                     "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE",
                     "_ZN2at16getStepCallbacksENS_11RecordScopeE",
                     "_ZN5torch8autograd14AccumulateGrad5applyEOSt6vectorIN2at6TensorESaIS4_EE",
                     "__asan_default_options"}


def test_needs_nothing_but_libc():
    text = subprocess.run(["readelf", "-d", str(LIBRARY)], check=True, capture_output=True, text=True).stdout
    needed = {line.split("[")[1].rstrip("]") for line in text.splitlines() if "NEEDED" in line}
    assert needed <= {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


@pytest.mark.parametrize("command", [
    ["true"], ["false"], ["bash", "-c", "echo $0 | cat; exit 7"], ["git", "--version"], ["sh", "-c", "kill -TERM $$"],
    [sys.executable, "-c", "import json, ctypes, threading, sys; print(json.dumps([1])); sys.exit(5)"],
    ["cat", "/no/such/file"],
], ids=lambda c: c[0].rsplit("/", 1)[-1])
def test_program_without_torch_is_unharmed(setup, command):
    bare = run(command)
    with_library = setup.run(*command)
    assert (with_library.returncode, with_library.stdout, with_library.stderr) == (
        bare.returncode, bare.stdout, bare.stderr)
    assert setup.trace() == []


def test_compiler_is_unharmed(setup, tmp_path):
    (tmp_path / "program.c").write_text("int main(void) { return 9; }")
    done = setup.run(CC, "-o", tmp_path / "program", tmp_path / "program.c")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert setup.run(tmp_path / "program").returncode == 9
    assert setup.trace() == []


@pytest.mark.parametrize("program", ["cat", sys.executable])
def test_core_is_not_mapped_without_torch(setup, program):
    arguments = ["/proc/self/maps"] if program == "cat" else ["-c", "print(open('/proc/self/maps').read())"]
    maps = setup.run(program, *arguments).stdout
    assert str(setup.preload) in maps
    assert "libnumsan_core" not in maps


def test_static_program(setup, tmp_path):
    try:
        program = cc(tmp_path / "static", "-static",
                     source='#include <stdio.h>\nint main(void) { puts("x"); return 3; }')
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no static C library here: {error.stderr.strip().splitlines()[-1]}")
    done = setup.run(program)
    assert (done.returncode, done.stdout, done.stderr) == (3, "x\n", "")


def own_setuid_program(tmp_path):
    """A setuid program of our own that says whether the loader is in secure mode; takes root to be of use."""
    program = cc(tmp_path / "setuid", source=r"""
        #include <stdio.h>
        #include <sys/auxv.h>
        int main(void) { printf("%d\n", getauxval(AT_SECURE) != 0); return 0; }""")
    program.chmod(0o4755)
    for folder in [tmp_path, *tmp_path.parents]:
        if not folder.stat().st_mode & 0o001 and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    return program


def system_setuid_program():
    """One of the system's programs that are setuid root and have --version; None where there is none."""
    for name in ("su", "mount", "umount", "sudo"):
        path = shutil.which(name, path="/usr/bin:/bin")
        if path and os.stat(path).st_mode & stat.S_ISUID and os.stat(path).st_uid == 0 \
                and not os.statvfs(path).f_flag & os.ST_NOSUID:
            return path
    return None


def test_setuid_program(setup, tmp_path):
    """In secure mode the loader drops a preload with a path: the program runs as without numsan, which stays out."""
    user = 65534 if os.geteuid() == 0 else None
    command = None
    if user is not None:
        own = own_setuid_program(tmp_path)
        if subprocess.run([str(own)], capture_output=True, text=True, user=user).stdout == "1\n":
            command = [str(own)]
    if command is None:
        program = system_setuid_program()
        if program is None:
            pytest.skip("no setuid program here: not root or mounted nosuid, and no su, mount, umount or sudo that is")
        command = [program, "--version"]
    bare = subprocess.run(command, capture_output=True, text=True, user=user, env=clean_environment())
    done = subprocess.run(command, capture_output=True, text=True, user=user,
                          env=clean_environment(LD_PRELOAD=setup.preload, NUMSAN_TEST_TRACE=setup.trace_file))
    assert bare.returncode == 0 and bare.stdout, bare
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout), done
    assert "numsan" not in done.stderr
    assert setup.trace() == []


def test_setuid_program_under_a_preload_of_the_whole_system(setup, tmp_path):
    """/etc/ld.so.preload counts in secure mode, too: there the library itself has to stay out."""
    if os.geteuid() != 0:
        pytest.skip("only root can have an /etc/ld.so.preload of its own")
    etc = tmp_path / "etc"
    shutil.copytree("/etc", etc, symlinks=True, ignore_dangling_symlinks=True)
    (etc / "ld.so.preload").write_text(f"{setup.preload}\n")
    program = opener(tmp_path)
    own_setuid_program(tmp_path)  # opens the folders to other users
    as_nobody = "exec setpriv --reuid=65534 --regid=65534 --clear-groups"
    command = ["unshare", "--mount", "sh", "-c",
               f"mount --bind {etc} /etc && {as_nobody} {program} {setup.extension}"]
    environment = clean_environment(NUMSAN_TEST_TRACE=setup.trace_file)
    setup.trace_file.touch()
    setup.trace_file.chmod(0o666)
    if subprocess.run([*command[:4], f"mount --bind {etc} /etc"], capture_output=True).returncode != 0:
        pytest.skip("nothing can be mounted here")
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, len(setup.attached())) == (0, 1), (done, "the preload has no effect here: nothing to test")
    setup.trace_file.write_text("")
    program.chmod(0o4755)
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr, setup.trace()) == (0, "", []), done


def test_extension_loads_the_core_once(setup, tmp_path):
    program = opener(tmp_path)
    done = setup.run(program, setup.extension, setup.extension)
    assert (done.returncode, done.stdout, done.stderr) == (0, "errno 0 error none\n" * 2, "")
    assert setup.trace() == [f"attach 1 1 {setup.lib}", "thread"]


def test_failed_dlopen_reports_its_own_error(setup, tmp_path):
    program = opener(tmp_path)
    missing = setup.torch / "_C.missing.so"
    bare, done = run([program, missing]), setup.run(program, missing)
    assert done.returncode == 3
    assert done.stdout == bare.stdout
    assert str(missing) in done.stdout
    assert setup.trace() == []


def test_python_import_by_ctypes(setup):
    code = f"import ctypes; print(ctypes.CDLL({str(setup.extension)!r}).extension())"
    done = setup.run(sys.executable, "-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")
    assert len(setup.attached()) == 1


def test_program_linked_with_torch(setup, tmp_path):
    lib = setup.torch / "lib"
    program = cc(tmp_path / "linked", f"-L{lib}", "-ltorch_cpu", f"-Wl,-rpath,{lib}",
                 source="int torch_cpu(void); int main(int c, char** v) { return torch_cpu() + c; }")
    done = setup.run(program, "a", "b")
    assert (done.returncode, done.stdout, done.stderr) == (10, "", "")
    assert len(setup.attached()) == 1


def test_dlopen_by_name_from_the_program(setup, tmp_path):
    done = setup.run(opener(tmp_path), "libtorch_cpu.so", LD_LIBRARY_PATH=setup.torch / "lib")
    assert done.returncode == 0
    assert len(setup.attached()) == 1


def test_core_waits_for_the_outermost_dlopen(setup, tmp_path):
    """A constructor that dlopens, while torch is mapped but not initialised, must not bring the core in early."""
    inner = cc(tmp_path / "libinner_torch.so", "-shared", "-fPIC", source="int inner = 1;")
    outer = cc(tmp_path / "libouter_torch.so", "-shared", "-fPIC", f"-L{setup.torch / 'lib'}", "-Wl,--no-as-needed",
               "-ltorch_cpu", f"-Wl,-rpath,{setup.torch / 'lib'}", source=f"""
        #include <dlfcn.h>
        #include <fcntl.h>
        #include <stdlib.h>
        #include <unistd.h>
        __attribute__((constructor)) static void start(void) {{
            dlopen("{inner}", RTLD_NOW);
            int file = open(getenv("NUMSAN_TEST_TRACE"), O_WRONLY | O_CREAT | O_APPEND, 0600);
            if (write(file, "constructed\\n", 12) != 12) abort();
            close(file);
        }}""")
    assert setup.run(opener(tmp_path), outer).returncode == 0
    assert setup.trace()[0] == "constructed"
    assert len(setup.attached()) == 1


@pytest.mark.parametrize("environment", [
    {"NUMSAN_DISABLE": "1"}, {"NUMSAN_OPTIONS": "tier=off"}, {"NUMSAN_OPTIONS": "report=x:tier=off:verbosity=0"},
    {"NUMSAN_OPTIONS": "tier=full:tier=off"}], ids=str)
def test_switched_off(setup, tmp_path, environment):
    done = setup.run(opener(tmp_path), setup.extension, **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert setup.trace() == []


@pytest.mark.parametrize("environment", [
    {"NUMSAN_DISABLE": "0"}, {"NUMSAN_OPTIONS": "tier=official"}, {"NUMSAN_OPTIONS": "notier=off"},
    {"NUMSAN_OPTIONS": "tier=off:tier=full"}], ids=str)
def test_not_switched_off(setup, tmp_path, environment):
    assert setup.run(opener(tmp_path), setup.extension, **environment).returncode == 0
    assert len(setup.attached()) == 1


def test_build_tool_is_left_alone(setup, tmp_path):
    tool = opener(tmp_path).rename(tmp_path / "nvcc")
    assert setup.run(tool, setup.extension).returncode == 0
    assert setup.trace() == []


@pytest.mark.parametrize("name", ["./libA.so", "libB.so"])
def test_runpath_of_the_caller_counts(setup, tmp_path, name):
    """libA.so opens libtorchlike.so by name, which only its own RUNPATH $ORIGIN/sub finds."""
    cc(tmp_path / "sub" / "libtorchlike.so", "-shared", "-fPIC", source="int value(void) { return 42; }")
    body = """
        #include <dlfcn.h>
        int call(void) {
            void* library = dlopen("libtorchlike.so", RTLD_NOW);
            return library ? ((int (*)(void))dlsym(library, "value"))() : 1;
        }"""
    for library in ("libA.so", "libB.so"):
        cc(tmp_path / library, "-shared", "-fPIC", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/sub", source=body)
    program = cc(tmp_path / "caller", "-ldl", "-Wl,--enable-new-dtags,-rpath,$ORIGIN", source=f"""
        #include <dlfcn.h>
        int main(void) {{
            void* library = dlopen("{name}", RTLD_NOW);
            return library ? ((int (*)(void))dlsym(library, "call"))() : 2;
        }}""")
    assert run([program], cwd=tmp_path).returncode == 42
    done = run([program], preload=str(setup.preload), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (42, "")


def test_threads_keep_their_attributes(setup, tmp_path):
    program = cc(tmp_path / "threads", "-pthread", "-ldl", source=r"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <pthread.h>
        #include <stdio.h>
        static void* routine(void* argument) {
            pthread_attr_t own;
            size_t stack;
            int detached;
            pthread_getattr_np(pthread_self(), &own);
            pthread_attr_getstacksize(&own, &stack);
            pthread_attr_getdetachstate(&own, &detached);
            printf("%zu %d %d\n", stack, detached, *(int*)argument);
            return argument;
        }
        int main(int argc, char** argv) {
            if (argc > 1 && !dlopen(argv[1], RTLD_NOW)) return 2;
            for (int i = 0; i < 3; i++) {
                pthread_attr_t attributes;
                pthread_t thread;
                void* result = 0;
                pthread_attr_init(&attributes);
                pthread_attr_setstacksize(&attributes, (512 + 64 * i) << 10);
                if (pthread_create(&thread, &attributes, routine, &i)) return 3;
                if (pthread_join(thread, &result) || result != &i) return 4;
            }
            pthread_attr_t impossible;
            pthread_t thread;
            cpu_set_t none;
            CPU_ZERO(&none);
            pthread_attr_init(&impossible);
            pthread_attr_setaffinity_np(&impossible, sizeof none, &none);
            printf("error %d\n", pthread_create(&thread, &impossible, routine, &argc));
            return 0;
        }""")
    bare, done = run([program, setup.extension]), setup.run(program, setup.extension)
    assert (done.returncode, done.stdout, done.stderr) == (0, bare.stdout, "")
    assert "error 22" in done.stdout
    assert setup.trace().count("thread") == 3


def test_cancelled_thread(setup, tmp_path):
    program = cc(tmp_path / "cancel", "-pthread", "-ldl", source=r"""
        #include <dlfcn.h>
        #include <pthread.h>
        #include <unistd.h>
        static void* routine(void* argument) { for (;;) pause(); return argument; }
        int main(int argc, char** argv) {
            if (!dlopen(argv[1], RTLD_NOW)) return 2;
            for (int i = 0; i < 100; i++) {
                pthread_t thread;
                void* result = 0;
                if (pthread_create(&thread, 0, routine, 0)) return 3;
                pthread_cancel(thread);
                pthread_join(thread, &result);
                if (result != PTHREAD_CANCELED) return 4;
            }
            return 0;
        }""")
    assert setup.run(program, setup.extension).returncode == 0
    assert setup.trace().count("thread") == 100


@pytest.mark.parametrize("order", ["{numsan}:{other}", "{other}:{numsan}", "{numsan} {numsan}", "{numsan}:{copy}",
                                   "{copy}:{other}:{numsan}"])
def test_beside_other_libraries(setup, tmp_path, order):
    """The other library wraps dlopen and pthread_create in C, as profilers do; the copy is numsan from elsewhere."""
    other = cc(tmp_path / "libother.so", "-shared", "-fPIC", "-ldl", source=r"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <pthread.h>
        void* dlopen(const char* file, int mode) {
            return ((void* (*)(const char*, int))dlsym(RTLD_NEXT, "dlopen"))(file, mode);
        }
        int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* p) {
            return ((int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*))
                    dlsym(RTLD_NEXT, "pthread_create"))(t, a, f, p);
        }""")
    copy = tmp_path / "copy" / "libnumsan.so"
    copy.parent.mkdir()
    shutil.copy(setup.preload, copy)
    shutil.copy(setup.core, copy.parent)
    preload = order.format(numsan=setup.preload, other=other, copy=copy)
    done = setup.run(opener(tmp_path), setup.extension, preload=preload)
    assert (done.returncode, done.stdout, done.stderr) == (0, "errno 0 error none\n", "")
    assert len(setup.attached()) == 1
    assert setup.trace().count("thread") == 1


def test_missing_core_is_one_line(setup, tmp_path):
    setup.core.unlink()
    done = setup.run(opener(tmp_path), setup.extension)
    assert (done.returncode, done.stdout) == (0, "errno 0 error none\n")
    assert done.stderr == f"numsan: off: libnumsan_core.so is not beside {setup.preload}\n"


@pytest.mark.parametrize("content", ["not a library", ""])
def test_broken_core_is_one_line(setup, tmp_path, content):
    setup.core.write_text(content)
    done = setup.run(opener(tmp_path), setup.extension)
    assert (done.returncode, done.stdout) == (0, "errno 0 error none\n")
    assert done.stderr.startswith("numsan: off: ") and done.stderr.count("\n") == 1


def test_core_without_entry_is_one_line(setup, tmp_path):
    cc(setup.core, "-shared", "-fPIC", source="int nothing;")
    done = setup.run(opener(tmp_path), setup.extension)
    assert done.returncode == 0
    assert done.stderr == f"numsan: off: {setup.core} has no numsan_core_attach\n"


@pytest.mark.parametrize("how", ["relative", "link", "sibling"])
def test_core_is_found(setup, tmp_path, how):
    program = opener(tmp_path)
    preload = setup.preload
    if how == "relative":
        preload = "lib/libnumsan.so"
        program = cc(tmp_path / "chdir", "-ldl", source=r"""
            #include <dlfcn.h>
            #include <unistd.h>
            int main(int argc, char** argv) { return chdir("/") || !dlopen(argv[1], RTLD_NOW); }""")
    elif how == "link":
        preload = tmp_path / "libnumsan.so"
        preload.symlink_to(setup.preload)
    else:
        preload = tmp_path / "bin" / "libnumsan.so"
        preload.parent.mkdir()
        setup.preload.rename(preload)
    done = run([program, setup.extension], preload=str(preload), cwd=tmp_path, NUMSAN_TEST_TRACE=setup.trace_file)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(setup.attached()) == 1


def test_valgrind_finds_nothing(setup, tmp_path):
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    # No $ORIGIN in any run path here: glibc's own reading of it is what memcheck would report.
    program = opener(tmp_path, "-g")
    done = run(["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite",
                program, setup.extension], preload=str(setup.preload), NUMSAN_TEST_TRACE=setup.trace_file)
    assert done.returncode == 0, done.stderr
    assert len(setup.attached()) == 1
