"""Lines of a function that read the same are different places: each that makes a bad value is a finding of its own."""
import run_numsan

# Precision and recall of a soft segmentation, each divided by a sum that one batch leaves at zero.
PROGRAM = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def soft_scores(predicted, target, eps):
    hit = (predicted * target).sum()
    found = predicted.sum() * target.any()
    score = hit / (found + eps)
    precision = score
    found = target.sum()
    score = hit / (found + eps)
    return precision, score
for step in range(4):
    target = torch.ones(8, 3) if step < 2 else torch.zeros(8, 3)
    optimizer.zero_grad()
    precision, recall = soft_scores(torch.sigmoid(model(torch.rand(8, 4))), target, EPS)
    (1 - precision).backward(retain_graph=True)
    (1 - recall).backward()
    for parameter in model.parameters():
        parameter.grad.clamp_(-1, 1)
    optimizer.step()
"""
LINES = [9, 12]


def watched(tmp_path, eps):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("EPS", eps))
    lines = program.read_text().splitlines()
    assert lines[LINES[0] - 1] == lines[LINES[1] - 1] and "hit /" in lines[LINES[0] - 1]
    done = run_numsan.run_watched_fork(program, cwd=tmp_path, clean=eps != "0")
    assert done.returncode == 0, done.describe()
    return done


def test_each_of_them_is_a_finding(warm, tmp_path):
    done = watched(tmp_path, "0")
    run_numsan.validate(done.report)
    assert [one["location"]["line"] for one in done.findings] == LINES, done.describe()
    assert {one["op"] for one in done.findings} == {"aten::div"}, done.describe()
    assert len({one["fingerprint"] for one in done.findings}) == 2, done.describe()


def test_healthy_twin_is_met_with_silence(warm, tmp_path):
    done = watched(tmp_path, "1e-6")
    assert done.findings == [] and done.stderr == "", done.describe()
