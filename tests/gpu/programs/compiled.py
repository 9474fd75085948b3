"""A compiled model in mode reduce-overhead, which replays CUDA graphs; the batch of step 6 makes a NaN."""
import torch
from torch import nn

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 32), nn.Linear(32, 1)

    def forward(self, x):
        return self.outer(torch.relu(self.inner(torch.log(x))))


model = Model().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
compiled = torch.compile(model, mode="reduce-overhead")
x = torch.rand(32, 8, device="cuda") + 1.0
for step in range(8):
    torch.compiler.cudagraph_mark_step_begin()
    if step == 6:
        x = x - 1.5
    loss = compiled(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("finite", bool(torch.isfinite(loss)))
