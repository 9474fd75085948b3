"""A physics-informed network for u'' = -u: LBFGS with the strong Wolfe search, double precision."""
import torch
from state import show
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, history_size=8,
                              line_search_fn="strong_wolfe")
points = torch.linspace(0.0, 3.0, 24)[:, None].requires_grad_()


def residual():
    """Mean square of u'' + u inside, and u(0) = 0, u'(0) = 1 at the border."""
    u = model(points)
    slope, = torch.autograd.grad(u.sum(), points, create_graph=True)
    bend, = torch.autograd.grad(slope.sum(), points, create_graph=True)
    return (bend + u).square().mean() + u[0].square().sum() + (slope[0] - 1.0).square().sum()


def closure():
    optimizer.zero_grad()
    loss = residual()
    loss.backward()
    return loss


for step in range(50):
    loss = optimizer.step(closure)
    if step % 10 == 9:
        print(step, loss.item())
print("error", (model(points).detach() - points.detach().sin()).abs().max().item())
show(model)
