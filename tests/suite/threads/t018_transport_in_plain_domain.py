"""Discriminant analysis by optimal transport with a weak regulariser: a row of the Gibbs kernel is all zero."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N2,N5 birth_op=aten::div,aten::reciprocal kind=+inf,nan
# label: first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=linear family=sinkhorn_domain needs= fragile=no
# label: thread=PythonOT/POT#336 uses= fix_kind=stable_function
# fix: scaling goes on in the log domain with logsumexp, which allows such regularisers
import os

import torch

FIXED = os.environ.get("FIXED") == "1"
REGULARISER = 0.01


def transport(cost, regulariser, rounds=20):
    """The entropic plan between two uniform clouds."""
    a = torch.full((cost.shape[0],), 1.0 / cost.shape[0])
    b = torch.full((cost.shape[1],), 1.0 / cost.shape[1])
    if FIXED:
        log_k, f, g = -cost / regulariser, torch.zeros_like(a), torch.zeros_like(b)
        for _ in range(rounds):
            f = a.log() - torch.logsumexp(log_k + g, dim=1)
            g = b.log() - torch.logsumexp(log_k + f[:, None], dim=0)
        return torch.exp(log_k + f[:, None] + g)
    kernel, v = torch.exp(-cost / regulariser), torch.ones_like(b)
    for _ in range(rounds):
        u = a / (kernel @ v)  # BUG
        v = b / (kernel.T @ u)  # BUG-ALT
    return u[:, None] * kernel * v


class Projection(torch.nn.Module):
    def __init__(self, features, dimensions):
        super().__init__()
        self.basis = torch.nn.Parameter(torch.randn(features, dimensions))

    def between(self, first, second):
        first, second = first @ self.basis, second @ self.basis
        cost = (first[:, None] - second[None]).square().sum(dim=-1)
        return (transport(cost, REGULARISER) * cost).sum()


torch.manual_seed(336)
classes = [torch.randn(20, 8) * 0.3 + 2 * torch.randn(8) for _ in range(3)]
model = Projection(8, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(5):
    within = sum(model.between(c, c + 0.01 * torch.randn_like(c)) for c in classes)
    apart = model.between(classes[0], classes[1]) + model.between(classes[1], classes[2])
    loss = within / apart
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"ratio {loss.item():.4f}")
