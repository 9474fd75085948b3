"""Scripted, traced and frozen modules of TorchScript, past the runs in which its executor profiles and optimizes. The
line that is named is that of the call into them."""
import torch
from torch import nn

import small_training


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.gate = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, times: int):
        for _ in range(times):
            if x.mean() > 10:
                x = x * 0.5
            x = torch.tanh(self.inner(x)) * torch.sigmoid(self.gate(x)) + x
        return x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scripted = torch.jit.script(Gated())
        self.traced = torch.jit.trace(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1)), torch.rand(4, 8))

    def forward(self, x):
        return self.traced(self.scripted(x, 2))


@torch.jit.script
def negative_log(x):
    return (-x - 1).log()


torch.manual_seed(0)
training = small_training.Training(0, Model()).steps()
frozen = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.script(training.model.eval())))
with torch.no_grad():
    for _ in range(4):
        said = frozen(torch.rand(4, 8))
small_training.state.show(training.model, said)
loss = negative_log(training.rate(torch.rand(12, 8))).mean()  # BUG
print("then", training.update(loss))
