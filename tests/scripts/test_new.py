"""scripts/new in a copy of the sources: all the places a new thing needs, and tests that fail until it is filled in."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import run_numsan

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = run_numsan.BUILD


@pytest.fixture
def tree(tmp_path):
    """The sources that scripts/new reads and writes."""
    root = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__", "test-logs", "build")
    for folder in ("host", "scripts", "tests/host", "tests/programs", "tests/suite", "tests/support"):
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    for file in ("tests/conftest.py", "python/numsan/_allow.py"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, root / file)
    return root


def new(tree, *arguments):
    return subprocess.run([sys.executable, tree / "scripts/new", *arguments], capture_output=True, text=True)


def texts(tree):
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def created(tree, *arguments):
    """{path: text} of what a call made or changed; each of those is named in its output."""
    before = texts(tree)
    done = new(tree, *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done
    after = {path: text.decode() for path, text in texts(tree).items() if before.get(path) != text}
    said = dict(re.findall(r"^(?:fill in|changed)  (\S+)(.*)$", done.stdout, re.M))
    assert set(said) == set(after), done.stdout
    return after


def first_row(tree, table, macro):
    """The name in the second column of a table's first row."""
    return re.search(macro + r'\("\w+", "?([\w-]+)', (tree / table).read_text())[1]


def compiled_test(tree, folder, name, *sources):
    """Compiles a new test and `sources` of the copy, runs it and returns what it printed; it has to fail."""
    program = folder / name
    libraries = sorted(BUILD.glob("libnumsan_*.a"))
    # An object of a library has several sources, also those that are given anew here: the first definition is theirs.
    subprocess.run(["g++", "-std=c++20", "-O0", f"-I{tree}", f"-I{BUILD / 'generated'}", "-o", program, *sources,
                    "-Wl,--allow-multiple-definition", "-Wl,--start-group", *libraries, "-Wl,--end-group",
                    "-lgtest_main", "-lgtest", "-lpthread", "-ldl"], check=True, cwd=tree)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 1 and "[  PASSED  ] 0 tests" in done.stdout, done.stdout
    return done.stdout


@pytest.mark.nightly
def test_program_fails_until_it_is_filled_in(warm, tree):
    files = created(tree, "program", "loss_of_nothing")
    folder = "tests/programs/loss_of_nothing"
    assert set(files) == {f"{folder}/{name}" for name in ("victim.py", "twin.py", "expect.json")}
    assert all("FILL IN" in text for text in files.values())
    known = json.loads((ROOT / "tests/programs/log_of_negative/expect.json").read_text())
    assert set(json.loads(files[f"{folder}/expect.json"])) == set(known)
    done = subprocess.run([run_numsan.PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/programs",
                           "-k", "loss_of_nothing"], cwd=tree, capture_output=True, text=True,
                          env={**os.environ, "NUMSAN_BUILD": str(BUILD), "NUMSAN_PYTHON": run_numsan.PYTHON})
    assert re.search(r"^4 failed, \d+ deselected", done.stdout.splitlines()[-1]), done.stdout


def test_mechanism_is_in_every_table_and_its_tests_fail(build, tree, tmp_path):
    last = re.findall(r'"NS(\d+)"', (tree / "host/finding/mechanisms.def").read_text())[-1]
    code = f"NS{int(last) + 1}"
    files = created(tree, "mechanism", "ALIAS", code, "shared", "memory")
    assert f'NUMSAN_MECHANISM("{code}", ALIAS, "shared memory",' in files["host/finding/mechanisms.def"]
    schema = json.loads(files["host/report/report.schema.json"])
    published = json.loads((ROOT / "host/report/report.schema.json").read_text())
    enum, before = [one["$defs"]["finding"]["properties"]["mechanism"]["enum"] for one in (schema, published)]
    assert enum == [*before, "ALIAS"]
    assert '"ALIAS")' in files["tests/suite/markers.py"]
    assert f"range(101, {int(last) + 2})" in files["python/numsan/_allow.py"]
    page = re.search(r'^NUMSAN_EXPLAIN\("ALIAS",.*?"\)\n', files["host/explain/mechanisms.def"], re.M | re.S)
    assert page[0].count("raise SystemExit(\"FILL IN") == 2
    test = tree / "tests/host/cause/mechanism_alias_test.cpp"
    said = compiled_test(tree, tmp_path, "mechanism", test, "host/explain/explain.cpp", "host/finding/tables.cpp")
    assert said.count("FILL IN") == 2, said


def test_rule_is_asked_and_its_tests_fail(build, tree, tmp_path):
    count = len(re.findall(r'NUMSAN_CATEGORY\("N\d+"', (tree / "host/finding/categories.def").read_text()))
    word = f"N{count + 1}"
    files = created(tree, "rule", "bad_luck")
    assert files["host/finding/categories.def"].index(f'"{word}", "bad-luck"') < \
        files["host/finding/categories.def"].index('NUMSAN_CATEGORY("U"')
    assert f"range(1, {count + 2})" in files["python/numsan/_allow.py"]
    assert f'{{"{word}", bad_luck}}' in files["host/cause/ranking.cpp"]
    assert f'NUMSAN_EXPLAIN("{word}",' in files["host/explain/categories.def"]
    schema = json.loads(files["host/report/report.schema.json"])
    assert word in schema["$defs"]["category"]["properties"]["id"]["enum"]
    said = compiled_test(tree, tmp_path, "rule", "tests/host/cause/rules/bad_luck_test.cpp",
                         "host/cause/ranking.cpp", "host/cause/rules/bad_luck.cpp", "host/finding/tables.cpp")
    assert "FILL IN" in said, said


def test_another_name_is_asked_for(tree):
    before = texts(tree)
    taken = first_row(tree, "host/finding/mechanisms.def", "NUMSAN_MECHANISM")
    cause = first_row(tree, "host/finding/categories.def", "NUMSAN_CATEGORY").replace("-", "_")
    for arguments, words in [(["program", "log_of_negative"], "is there already"), (["program", "LogOf"], "lower case"),
                             (["mechanism", taken, "NS199", "x"], f"has {taken} already"),
                             (["mechanism", "ALIAS", "NS101", "x"], "has NS101 already"),
                             (["mechanism", "ALIAS", "NS199", "x"], "the next free code is NS1"),
                             (["mechanism", "alias", "NS115", "x"], "capitals"),
                             (["rule", cause], "already")]:
        done = new(tree, *arguments)
        assert done.returncode in (1, 2) and words in done.stderr, done
    assert texts(tree) == before
