"""The option `dump`: what the op of a finding was called with is in a file, from before the op wrote it."""
import pathlib

import pytest

torch = pytest.importorskip("torch", reason="dumps are read back with torch, which this interpreter has not")
import dumped  # noqa: E402
import run_numsan  # noqa: E402

pytestmark = pytest.mark.xdist_group("dumps")  # one worker has the processes of which they are forks
FOLDERS = {}  # of the options of a fork server
OFFENDERS = pathlib.Path(__file__).resolve().parent / "offenders.py"


def run(name, tmp_path_factory, **options):
    """The result of offenders.py NAME and its dumps in the order of the findings."""
    key = run_numsan.option_text(options)
    if key not in FOLDERS:
        FOLDERS[key] = tmp_path_factory.mktemp("dumps")
    folder = FOLDERS[key]
    result = run_numsan.run_watched_fork(OFFENDERS, args=[name], options={"dump": folder, **options})
    assert result.returncode == 0, result.describe()
    if result.report is not None:
        run_numsan.validate(result.report)
    return result, [pathlib.Path(one["dump"]) for one in result.findings if one["dump"] is not None]


def one_dump(name, tmp_path_factory, **options):
    result, paths = run(name, tmp_path_factory, **options)
    assert len(paths) == 1, result.describe()
    made = dumped.Dump(paths[0])
    assert f"dump: {paths[0]}; numsan replay {paths[0]}" in " ".join(result.stderr.split()), result.stderr
    reported = [one for one in result.findings if one["dump"] is not None]
    assert made.about["interpreter"] == run_numsan.PYTHON
    for key in ("code", "op", "fingerprint", "location", "inputs", "help", "dump"):
        assert made.about["finding"][key] == reported[0][key]
    return made, reported[0]


# Name of the program, operator, overload; each is run again and must write what it wrote.
CASES = {
    "forward": ("aten::log", ""),
    "in_place": ("aten::sqrt_", ""),
    "same_operand": ("aten::div_", "Tensor"),
    "shared_views": ("aten::div_", "Tensor"),
    "strided": ("aten::reciprocal", ""),
    "expanded": ("aten::log", ""),
    "optimizer": ("aten::addcdiv_", ""),
    "optimizer_of_lists": ("aten::_foreach_addcdiv_", "ScalarList"),
    "numbers_and_none": ("aten::convolution", ""),
    "number": ("aten::pow", "Tensor_Scalar"),
    "half": ("aten::exp", ""),
    "bfloat16": ("aten::exp", ""),
    "float8": ("aten::_to_copy", ""),
    "of_float8": ("aten::log", ""),
    "complex128": ("aten::reciprocal", ""),
    "random_numbers": ("aten::normal", "Tensor_Tensor"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_operator_runs_again_as_it_ran(name, warm, tmp_path_factory):
    made, finding = one_dump(name, tmp_path_factory)
    assert (made.op["name"], made.op["overload"]) == CASES[name], made.op
    assert finding["op"] == made.op["name"] and made.op["schema"].startswith(made.op["name"])
    wrote = made.results()
    again = made.run_again()
    assert len(wrote) == len(again) > 0
    for one, other in zip(wrote, again):
        assert dumped.same_bits(one, other), (one, other)
    bad = [one for one in wrote if one.is_floating_point() and not torch.isfinite(one.double()).all()]
    assert bad or name == "complex128", wrote


def test_what_it_was_called_with(warm, tmp_path_factory):
    made, _ = one_dump("in_place", tmp_path_factory)
    assert made.arguments()["self"].tolist() == [4.0, -4.0, 9.0]  # not the root that lies there now
    made, _ = one_dump("same_operand", tmp_path_factory)
    assert made.arguments()["self"].tolist() == [1.0, 0.0, 2.0]
    assert made.argument("other")["same_as"] == made.argument("self")["tensor"]
    made, _ = one_dump("shared_views", tmp_path_factory)
    assert made.arguments()["self"].tolist() == [1.0, 4.0, 6.0]
    assert made.arguments()["other"].tolist() == [0.0, 0.0, 7.0]
    assert made.argument("self")["strides"] == [2]
    made, _ = one_dump("expanded", tmp_path_factory)
    assert made.argument("self")["strides"] == [1, 0] and made.argument("self")["sizes"] == [2, 5]
    made, _ = one_dump("numbers_and_none", tmp_path_factory)
    assert made.arguments()["bias"] is None and made.arguments()["stride"] == [2, 2]
    assert made.arguments()["transposed"] is False and made.argument("weight")["requires_grad"] is True
    made, _ = one_dump("number", tmp_path_factory)
    assert made.argument("exponent") == {"name": "exponent", "kind": "number", "value": -0.5}
    made, _ = one_dump("float8", tmp_path_factory)
    assert made.argument("dtype") == {"name": "dtype", "kind": "dtype", "value": "float8_e5m2"}


@pytest.mark.parametrize("name, node, forward, known", [
    ("backward", "SqrtBackward0", "aten::sqrt", {"result.0"}),
    ("backward_of_saved", "PowBackward1", "aten::pow", {"arg.0", "arg.1", "result.0"}),
])
def test_a_backward_birth_has_the_forward_too(name, node, forward, known, warm, tmp_path_factory):
    made, finding = one_dump(name, tmp_path_factory)
    about = made.about
    assert about["node"] == node and finding["forward"]["op"] == about["forward"]["name"] == forward
    assert [dumped.same_bits(*pair) for pair in zip(made.results(), made.run_again())] == [True] * len(made.results())
    there = {one.removeprefix("forward.") for one in made.tensors if one.startswith("forward.")}
    assert there >= known, about["forward"]
    for item in about["forward"]["args"]:
        if item["kind"] == "left_out":
            assert "before the backward pass" in item["why"] and item["sizes"] == [3]
    if name == "backward":
        assert made.tensors["forward.result.0"].tolist() == [0.0, 2.0, 3.0]


def test_what_is_too_large_is_left_out_and_two_findings_have_files(warm, tmp_path_factory):
    result, paths = run("large", tmp_path_factory, dump_limit="1K", dump_findings=2)
    assert [path.name.split("-")[-1] for path in paths] == ["1.safetensors", "2.safetensors"], result.describe()
    first, second = map(dumped.Dump, paths)
    given = first.argument("self")
    assert given["kind"] == "left_out" and given["sizes"] == [4096]
    assert given["why"] == "16.4 kB are over dump_limit=1K"
    assert first.tensors == {} and second.arguments()["self"].tolist() == [-1.0]


def test_only_the_first_finding_has_one(warm, tmp_path_factory):
    result, paths = run("large", tmp_path_factory)
    assert len(result.findings) == 2 and len(paths) == 1 and result.findings[0]["dump"] is not None


def test_a_birth_that_waits_is_not_lost_among_those_that_are_masked(warm, tmp_path_factory):
    made, finding = one_dump("absorbed", tmp_path_factory)
    assert made.op["name"] == "aten::sqrt" and made.arguments()["self"].tolist() == [-3.0]


def test_of_several_threads(warm, tmp_path_factory):
    made, finding = one_dump("threads", tmp_path_factory)
    given = made.arguments()["self"]
    assert (given == -1).all() and len(given) == finding["inputs"][0]["shape"][0]


def test_a_folder_that_cannot_be_written_is_one_line(warm, tmp_path):
    (tmp_path / "file").write_text("no folder")
    result = run_numsan.run(OFFENDERS, args=["large"], options={"dump": tmp_path / "file" / "dumps",
                                                                "dump_findings": 5}, cwd=tmp_path)
    lines = [line for line in result.stderr.splitlines() if "no dump" in line]
    assert result.returncode == 0 and len(lines) == 1 and len(result.findings) == 2, result.describe()
    assert "cannot make the folder" in lines[0] and "Not a directory" in lines[0]
    assert all(finding["dump"] is None for finding in result.findings)


def test_a_forked_child_writes_its_own(warm, tmp_path):
    result = run_numsan.run(OFFENDERS, args=["child"], cwd=tmp_path,
                            options={"dump": "there/%p", "report": tmp_path / "report-%p.json"})
    reports = [run_numsan.read_report(path) for path in tmp_path.glob("report-*.json")]
    findings = [(found["run"]["pid"], one) for found in reports for one in found["findings"]]
    assert result.returncode == 0 and len(findings) == 1, result.describe()
    pid, finding = findings[0]
    path = pathlib.Path(finding["dump"])
    assert path == tmp_path / "there" / str(pid) / f"numsan-{pid}-1.safetensors"
    assert dumped.Dump(path).op["name"] == "aten::log"
    assert [one.name for one in path.parent.iterdir()] == [path.name]  # no temporary file is left
