"""Low-rank adapters under an orthogonalising optimizer: the first factor has no gradient at first."""
# label: phase=optimizer mechanism=DIV0 category=N2 category_alt=N5,N6 birth_op=aten::div kind=nan first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=orthogonalised_zero_gradient needs= fragile=no
# label: thread=microsoft/dion#24 uses=peft fix_kind=clamp
# fix: the norm of the normalised update, by which the old norm is divided, gets a lower limit of 1e-8
import os

import torch
from peft import LoraConfig, get_peft_model
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def orthogonal(matrix, rounds=5):
    """About the nearest matrix with orthonormal rows, by Newton's and Schulz's iteration."""
    x = matrix / (matrix.norm() + 1e-7)
    wide = x.shape[0] <= x.shape[1]
    x = x if wide else x.T
    for _ in range(rounds):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x if wide else x.T


class RowScaledMuon(torch.optim.Optimizer):
    """Orthogonalised momentum; every row is then divided by a running mean of its own size."""

    def __init__(self, parameters, lr=0.02, momentum=0.95, decay=0.95):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["average"], state["size"] = torch.zeros_like(p), torch.zeros_like(p[:, :1])
                state["average"].lerp_(p.grad, 1 - group["momentum"])
                update = orthogonal(state["average"])
                state["size"].lerp_(update.square().mean(dim=1, keepdim=True), 1 - group["decay"])
                scaled = update / (state["size"].sqrt() + 1e-10)
                length = scaled.norm()
                if FIXED:
                    length = length.clamp(min=1e-8)
                p.add_(scaled * (update.norm() / length), alpha=-group["lr"])  # BUG


class Classifier(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.first, self.second, self.out = nn.Linear(12, width), nn.Linear(width, width), nn.Linear(width, 4)

    def forward(self, x):
        return self.out(torch.relu(self.second(torch.relu(self.first(x)))))


torch.manual_seed(24)
model = get_peft_model(Classifier(), LoraConfig(r=4, lora_alpha=8, target_modules=["first", "second"]))
teacher = torch.randn(12, 4)
optimizer = RowScaledMuon([p for p in model.parameters() if p.requires_grad])
for step in range(30):
    x = torch.randn(64, 12)
    loss = nn.functional.cross_entropy(model(x), (x @ teacher).argmax(dim=1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
