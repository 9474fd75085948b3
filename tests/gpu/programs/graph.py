"""A whole training step in a CUDA graph; the batch of replay BAD_REPLAY, 3 unless it is set, makes a NaN inside it."""
import os

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1).cuda()
x = torch.rand(32, 8, device="cuda") + 1.0


def step():
    for p in model.parameters():
        p.grad = None
    loss = torch.log(x).sum(1).mul(model(x).flatten()).mean()  # BUG
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p.sub_(p.grad, alpha=1e-3)
    return loss


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
bad = int(os.environ.get("BAD_REPLAY", "3"))
for replay in range(bad + 2):
    if replay == bad:
        x.copy_(torch.rand(32, 8, device="cuda") - 0.5)
    graph.replay()
torch.cuda.synchronize()
print("finite", bool(torch.isfinite(loss)), all(bool(torch.isfinite(p).all()) for p in model.parameters()))
