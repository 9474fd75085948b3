"""Real work without torch under the preload: the same results, and next to nothing added to a program's start.

What is added is counted and not timed: instructions and system calls of `true`, which do almost nothing themselves.
"""
import os
import re
import shutil
import signal
import subprocess

import pytest

import run_numsan

needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def environment(folder, preload):
    kept = {key: value for key, value in os.environ.items()
            if key != "LD_PRELOAD" and not key.startswith(("NUMSAN_", "GIT_"))}
    kept.update(HOME=str(folder), LC_ALL="C", TZ="UTC")
    if preload:
        kept["LD_PRELOAD"] = str(run_numsan.LIBRARY)
    return kept


def run(command, folder, preload):
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment(folder, preload), capture_output=True,
                          text=True, timeout=120, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def both(script, tmp_path):
    """(bare, watched): exit status, stdout, stderr of a shell script, each in an empty folder of the same name."""
    results = []
    for kind in ("bare", "watched"):
        folder = tmp_path / kind / "work"
        folder.mkdir(parents=True)
        results.append(run(["bash", "-c", script], folder, kind == "watched"))
    return results


SESSION = """
set -e
export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
git init -q -b main .
git config user.name someone
git config user.email someone@example.com
printf 'one\\ntwo\\n' > file
git add file
git commit -q -m first
printf 'three\\n' >> file
git commit -q -a -m second
git log --format='%H %s' -p | cat
git checkout -q -b side HEAD~1 && echo side > other && git add . && git commit -q -m side
git merge -q --no-edit main && git log --oneline --graph && git gc -q && git fsck
"""

SCRIPT = r"""
set -o pipefail
trap 'echo end $?' EXIT
count=0
while read -r word; do (echo "in a subshell: $word" | tr a-z A-Z) && count=$((count + 1)); done < <(printf 'a\nb\nc\n')
seq 1000 | sort -rn | awk '{ sum += $1 } END { print sum }' | tee sum | wc -c
x=$(cat sum; exit 4) || echo "status $?, $x"
diff <(seq 3) <(seq 4)
{ sleep 0 & wait $!; echo "background $?"; }
yes | head -n 2
echo "pipe ${PIPESTATUS[*]}"
echo to stderr >&2
exit 9
"""

BUILD = r"""
set -e
printf 'int twice(int x) { return 2 * x; }\n' > twice.c
printf '#include <stdio.h>\nint twice(int);\nint main(void) { printf("%%d\\n", twice(21)); return 7; }\n' > main.c
${CC:-cc} -O2 -c twice.c
${CC:-cc} -O2 -c main.c
${CC:-cc} -o program main.o twice.o
sha256sum program main.o twice.o
status=0; ./program || status=$?
printf 'int broken(void) { return missing; }\n' > broken.c
${CC:-cc} -c broken.c || echo "compiler $?"
${CC:-cc} -o none main.o 2>/dev/null || echo "linker $?"
exit $status
"""


@needs_git
def test_git_session(build, tmp_path):
    bare, watched = both(SESSION, tmp_path)
    assert bare[0] == 0 and "second" in bare[1], bare
    assert watched == bare


def test_script_with_pipes_and_subshells(build, tmp_path):
    bare, watched = both(SCRIPT, tmp_path)
    assert bare[0] == 9 and "500500" in bare[1] and bare[1].endswith("end 9\n"), bare
    assert watched == bare


def test_script_that_a_signal_ends(build, tmp_path):
    bare, watched = both("(sleep 0; echo child) | cat; kill -USR1 $$; echo not reached", tmp_path)
    assert bare == (-signal.SIGUSR1, "child\n", ""), bare
    assert watched == bare


def test_compile_and_link_of_two_files(build, tmp_path):
    bare, watched = both(BUILD, tmp_path)
    assert bare[0] == 7 and "42\n" in bare[1] and "compiler 1\n" in bare[1] and "linker 1\n" in bare[1], bare
    assert watched == bare


def counted(tmp_path, preload, *options):
    """What valgrind writes about a run of `true`."""
    log = tmp_path / f"valgrind-{preload}"
    status, _, told = run(["valgrind", f"--log-file={log}", *options, shutil.which("true")], tmp_path, preload)
    assert status == 0, told
    return log.read_text()


@needs_valgrind
def test_instructions_added_to_a_program_that_does_nothing(build, tmp_path):
    """All of them: the loader's for one more library, the constructor's, and those of a start through our main. They
    were 31 161 on 2026-11-22, beside 130 120 of `true` itself."""
    def instructions(preload):
        text = counted(tmp_path, preload, "--tool=callgrind", f"--callgrind-out-file={tmp_path / 'out'}")
        return int(re.search(r"Collected : (\d+)", text)[1])
    added = instructions(True) - instructions(False)
    assert 0 < added <= 60_000, f"{added} instructions more"


@needs_valgrind
def test_system_calls_added_to_a_program_that_does_nothing(build, tmp_path):
    def calls(preload):
        text = counted(tmp_path, preload, "--tool=none", "--trace-syscalls=yes")
        return re.findall(r"^SYSCALL\[\d+,\d+\]\( *\d+\) (\w+)", text, re.M)
    bare, watched = calls(False), calls(True)
    more = {name: watched.count(name) - bare.count(name) for name in sorted(set(watched) | set(bare))}
    added = {name: count for name, count in more.items() if count}
    assert 0 < sum(added.values()) <= 12, added  # 10 on 2026-11-22, to map one library
    assert not [name for name in added if re.search("clone|fork|exec|write|socket|unlink|futex", name)], added
