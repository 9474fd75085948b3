"""The manual page and the completion of shells say what the command takes, as its tables and its help do."""
import re
import shutil
import subprocess

import pytest
import run_numsan


def numsan(*words):
    done = subprocess.run([run_numsan.COMMAND, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout


@pytest.fixture(scope="module")
def options(build):
    """{key: the values that its row lists}"""
    rows = re.findall(r"^\| (\w+) \| (.*?) \| ", numsan("table", "options"), re.M)
    found = {key: values for key, values in rows if key != "key"}
    assert len(found) > 15 and found["tier"] == "auto, sentinel, boundary, full, off"
    return found


@pytest.fixture(scope="module")
def commands(build):
    found = re.findall(r"^  (\w+) {2,}", numsan("--help").split("Subcommands:")[1], re.M)
    assert {"run", "report", "explain", "doctor"} <= set(found)
    return found


def completed(script, *words):
    """What bash offers for the last of these words."""
    line = " ".join(f"'{word}'" for word in ("numsan", *words))
    ask = (f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _numsan; "
           'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "--norc", "-c", ask], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.split()


@pytest.fixture(scope="module")
def bash(build, tmp_path_factory):
    script = tmp_path_factory.mktemp("bash") / "numsan"
    script.write_text(numsan("table", "bash"))
    return script


def test_manual_names_every_command_and_option(options, commands):
    page = numsan("table", "man")
    terms = {term.removeprefix("--") for line in re.findall(r"^\\fB(.*)\\fR$", page, re.M)
             for term in line.replace("\\-", "-").split(", ")}
    assert set(options) <= terms
    assert re.findall(r"^\.SS numsan (\w+)$", page, re.M) == commands


def test_manual_is_understood(build, tmp_path):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed: the manual page is not formatted")
    page = tmp_path / "numsan.1"
    page.write_text(numsan("table", "man"))
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done


def test_bash_completes_commands_options_and_values(bash, options, commands):
    assert set(completed(bash, "")) == {*commands, "-h", "--help", "--version"}
    assert completed(bash, "rep") == [name for name in commands if name.startswith("rep")]
    assert {f"--{key}" for key in options} <= set(completed(bash, "run", "--"))
    assert completed(bash, "run", "--tier", "") == options["tier"].split(", ")
    assert completed(bash, "run", "--tier", "se") == ["sentinel"]
    assert completed(bash, "run", "--fail-on", "w") == completed(bash, "run", "--fail_on", "w") == ["warning"]
    assert completed(bash, "run", "--tier", "=", "f") == ["full"]  # bash takes --tier=f apart
    assert completed(bash, "run", "--budget", "") == []
    assert "NS102" in completed(bash, "explain", "")
    assert completed(bash, "report", "--col") == ["--color"]


def test_bash_completes_the_program_and_its_files(bash, tmp_path, monkeypatch):
    (tmp_path / "train_this.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert completed(bash, "run", "--tier", "full", "--", "python", "train_") == ["train_this.py"]
    assert completed(bash, "run", "--report", "train_") == ["train_this.py"]
    assert completed(bash, "report", "train_") == ["train_this.py"]
    assert "bash" in completed(bash, "run", "--", "bas")
    assert completed(bash, "run", "--", "python", "--ti") == [], "an option of the program's is not ours"


def test_zsh_knows_every_command_option_and_value(build, options, commands):
    script = numsan("table", "zsh")
    assert script.startswith("#compdef numsan\n")
    assert re.findall(r"^        (\w+)\)$", script, re.M) == commands
    for key, values in options.items():
        assert f"'--{key}=[" in script
        if re.fullmatch(r"\w+(, \w+)+", values):
            listed = re.search(rf"'--{key}=\[.*?\]:[^:]*:\((.*?)\)'", script)
            assert listed and sorted(listed[1].split()) == sorted(values.split(", ")), key


def test_zsh_understands_it(build, tmp_path):
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed: its completion is not loaded")
    (tmp_path / "_numsan").write_text(numsan("table", "zsh"))
    ask = (f"fpath=({tmp_path} $fpath); autoload -Uz compinit; compinit -u -D; whence -w _numsan; "
           f"zsh -n {tmp_path}/_numsan")
    done = subprocess.run(["zsh", "-f", "-c", ask], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "_numsan: function\n", ""), done


def test_the_build_wrote_them(build):
    for name, path in (("man", "man/man1/numsan.1"), ("bash", "bash-completion/completions/numsan"),
                       ("zsh", "zsh/site-functions/_numsan")):
        assert (build / "share" / path).read_text() == numsan("table", name), path
