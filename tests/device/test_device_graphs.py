"""A whole training step in a CUDA graph, on the test device, whose replays write what was written at the capture."""
import pytest

pytestmark = pytest.mark.xdist_group("device")

STEP = """
torch.manual_seed(0)
model = nn.Linear(8, 1).to(GPU)
x = (torch.rand(32, 8) + 1).to(GPU)
def step():
    for p in model.parameters():
        p.grad = None
    features = torch.log(x)  # BUG
    loss = features.sum(1).mul(model(x).flatten()).mean()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p.sub_(p.grad, alpha=1e-3)
    return loss
step()
if BAD:
    x.copy_((torch.rand(32, 8) - 0.5).to(GPU))
D.synchronize()
with Graph() as graph:
    loss = step()
graph.replay(12)
print(torch.isfinite(loss).item())
"""
# By turns, with time for nothing; as long as it is warm; always all of it.
OPTIONS = [{"warmup": 0}, {}, {"tier": "full", "budget": 0}]


@pytest.mark.parametrize("options", OPTIONS, ids=["by turns", "warm", "in full"])
def test_a_step_in_a_graph_names_the_line(attached, options):
    said, report = attached("from prelude import *\nBAD = True\n" + STEP, options=options)
    assert said.count("error[NS101]") == 1 and "program.py:10" in said, said
    assert [finding["op"] for finding in report["findings"]] == ["aten::log"], said
    assert report["findings"][0]["escape"]["into"] == "loss", said


@pytest.mark.parametrize("options", OPTIONS, ids=["by turns", "warm", "in full"])
def test_a_healthy_step_in_a_graph_is_silent(attached, options):
    said, report = attached("from prelude import *\nBAD = False\n" + STEP, options=options)
    assert (said, report["verdict"], report["findings"]) == ("", "clean", []), said
