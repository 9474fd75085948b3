"""scripts/test on a made-up machine: which stages each extent has, and that none is passed over in silence."""
import re

import pytest

QUICK = ["layers", "style", "unit tests (ctest)", "programs (pytest -m quick)", "public suite, forks"]
CI = ["what the tests import", *QUICK[:3], "programs (pytest)", "public suite", "unit tests, address+undefined"]
MORE = ["unit tests, thread", "kernels for all architectures", "changes of the kernels' PTX", "clang-tidy",
        "build and unit tests, clang", "fuzzing"]
REST = ["what the tests import", "programs (pytest -m nightly)", "programs, longer", *MORE]


@pytest.fixture
def tested(root_machine):
    """Runs scripts/test on a built tree where every tool does what its text says: (exit status, stages, stdout)."""
    for name in ("cmake", "ctest", "ninja", "g++", "setarch", "python"):
        root_machine.program(name, "exit 0\n")
    for path in ("build/bin/numsan", "build/bin/numsan_ptx_tests", "build-asan/bin/numsan_tests",
                 "build-tsan/bin/numsan_tests", "tests/fuzz/run", "scripts/setup", "scripts/build"):
        root_machine.program(path.split("/")[-1], "exit 0\n", (root_machine.root / path).parent)
    (root_machine.root / "tests/fuzz/targets.def").write_text("NUMSAN_FUZZ_TARGET(options)  // one\n")
    root_machine.program("python3", "exit 0\n")

    def run(*arguments, **environment):
        done = root_machine.run("test", *arguments, NUMSAN_PYTHON=root_machine.bin / "python", **environment)
        summary = done.stdout.partition("[test] summary\n")[2]
        stages = dict(re.findall(r"^  (.{1,32}?) +(passed|FAILED|NOT RUN)\b", summary, re.MULTILINE))
        return done.returncode, stages, done.stdout
    run.machine = root_machine
    return run


@pytest.mark.parametrize("arguments, stages", [(["--quick"], QUICK), ([], CI), (["--all"], [*CI, *MORE]),
                                               (["--rest"], REST)], ids=["quick", "ci", "all", "rest"])
def test_stages(arguments, stages, tested):
    status, seen, text = tested(*arguments)
    assert (status, seen) == (0, dict.fromkeys(stages, "passed")), text
    assert "[test] tried again: 0\n" in text
    markers = {"--quick": "quick", "--all": "nightly or not nightly", "--rest": "nightly"}.get("".join(arguments),
                                                                                               "not nightly")
    pytest_call, *again = [call for call in tested.machine.calls("python") if "pytest" in call]
    assert bool(again) == ("--rest" in arguments)
    assert f"-m {markers} --" in pytest_call and "-n 3 --dist loadgroup --max-worker-restart=0 " in pytest_call
    assert bool(tested.machine.calls("setup")) == ("--quick" not in arguments)


def test_the_quick_run_has_the_unit_tests_that_ci_leaves_to_sanitizers(tested):
    tested("--quick")
    configured, built, *_ = tested.machine.calls("cmake")
    assert "-DNUMSAN_UNIT_TESTS_ONCE=OFF" in configured and "--build" in built


def test_a_stage_without_time_fails_the_run(tested):
    status, seen, text = tested("--quick", NUMSAN_TEST_MINUTES="0")
    assert (status, seen) == (1, dict.fromkeys(QUICK, "NOT RUN")), text
    assert not tested.machine.calls("ctest") and "the end of public suite, forks" in text


def test_a_stage_that_fails_is_the_only_one(tested):
    tested.machine.program("ctest", "echo three tests failed\nexit 8\n")
    status, seen, text = tested("--quick")
    assert status == 1 and seen == {**dict.fromkeys(QUICK, "passed"), "unit tests (ctest)": "FAILED"}, text
    assert text.count("three tests failed\n") == 2, "shown when it ended, and at the end"


def test_the_sanitizers_run_beside_the_other_stages(tested):
    """And are waited for, however long they take; how they failed is shown where the log ends."""
    tested.machine.program("setarch", "exit 1\n")
    tested.machine.program("ctest", """
case "$*" in *build-asan*) until [ -e "$MACHINE/suite" ]; do sleep 0.1; done; echo one leak; exit 8 ;; esac
""")
    tested.machine.program("python", 'case "$*" in *suite/run*) touch "$MACHINE/suite" ;; esac\n')
    status, seen, text = tested()
    assert status == 1 and seen == {**dict.fromkeys(CI, "passed"), CI[-1]: "FAILED"}, text
    assert text.index("== public suite") < text.index("one leak") < text.index(f"the end of {CI[-1]}"), text


def test_what_the_tests_import_is_installed_beside_the_build(tested):
    """And nothing is tested without it."""
    tested.machine.program("build", 'touch "$MACHINE/built"\n', tested.machine.root / "scripts")
    tested.machine.program("setup", """
case "$*" in *--build-only*) exit 0 ;; esac
until [ -e "$MACHINE/built" ]; do sleep 0.1; done
echo no such package; exit 1
""", tested.machine.root / "scripts")
    status, seen, text = tested()
    assert status == 1 and not seen and "no such package\n" in text and not tested.machine.calls("ctest"), text


def test_changes_of_kernels_that_were_not_built_fail(tested):
    (tested.machine.root / "build/bin/numsan_ptx_tests").unlink()
    status, seen, text = tested("--all")
    assert status == 1 and seen["changes of the kernels' PTX"] == "FAILED" and "numsan_ptx_tests: not built" in text


def test_sanitized_tests_that_were_not_built_fail(tested):
    (tested.machine.root / "build-asan/bin/numsan_tests").unlink()
    status, seen, text = tested()
    assert status == 1 and seen[CI[-1]] == "FAILED" and "numsan_tests: not built" in text


CRASHED = "echo '==1==LeakSanitizer has encountered a fatal error.'; exit 1"


def sanitized(tested, shard_0, **environment):
    """Unit tests whose shard 0 does `shard_0` in its first turn and passes in its second; shard 1 passes."""
    tested.machine.program("setarch", "exit 1\n")
    tested.machine.program("numsan_tests", f"""
if [ "$GTEST_SHARD_INDEX" = 0 ] && mkdir "$MACHINE/begun" 2>/dev/null; then {shard_0}; fi
echo '[  PASSED  ] 9 tests.'
""", tested.machine.root / "build-asan/bin")
    return tested(**environment)


def test_tests_that_hang_fail_the_run(tested):
    status, seen, text = sanitized(tested, "exec sleep 1000", NUMSAN_SHARD_SECONDS="1")
    assert status == 1 and seen[CI[-1]] == "FAILED", text
    assert "build-asan/bin/numsan_tests shard 0: hung, ended after 1 s\n" in text and "tried again: 0\n" in text


def test_tests_that_passed_before_the_leak_checker_crashed_run_once_more(tested):
    status, seen, text = sanitized(tested, f"echo '[  PASSED  ] 9 tests.'; {CRASHED}")
    assert status == 0 and seen[CI[-1]] == "passed", text
    assert "[test] tried again: 1\n" in text and "shard 0: the leak checker's tracer crashed\n" in text


@pytest.mark.parametrize("shard_0", [f"echo '[  FAILED  ] 1 test.'; {CRASHED}", CRASHED, "exit 1",
                                     "echo '[  PASSED  ] 9 tests.'; echo 'ERROR: LeakSanitizer: leaks'; exit 23"],
                         ids=["failed", "not ended", "no reason", "leaks"])
def test_other_failures_of_a_shard_are_not_tried_again(shard_0, tested):
    status, seen, text = sanitized(tested, shard_0)
    assert status == 1 and seen[CI[-1]] == "FAILED" and "[test] tried again: 0\n" in text, text


def test_what_was_tried_again_is_counted_and_shown(tested):
    again = 'echo "suite p01: disturbed" >> "$NUMSAN_TEST_RETRIES"'
    tested.machine.program("python", f'case "$*" in *suite/run*) {again} ;; esac\n')
    status, _, text = tested("--quick")
    assert status == 0 and text.endswith("[test] tried again: 1\n  suite p01: disturbed\n"), text
    tested.machine.program("python", "exit 0\n")
    assert "[test] tried again: 0\n" in tested("--quick")[2], "what an earlier run tried again is not counted"


def test_nothing_is_built(tested):
    (tested.machine.root / "build/bin/numsan").unlink()
    status, stages, _ = tested("--quick")
    assert (status, stages) == (1, {})


def test_unknown_argument(tested):
    status, stages, _ = tested("--fast")
    assert (status, stages) == (2, {})


def test_help_names_every_extent(tested):
    status, _, text = tested("--help")
    assert status == 0 and "--quick" in text and "--all" in text and not tested.machine.calls("cmake")
