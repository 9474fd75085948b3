"""Calls operators in every way that the two hooks see differently: both must make the same events of it."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(4, 3)
w = torch.rand(3, 3, requires_grad=True)
layer = nn.Sequential(nn.Linear(3, 5), nn.LayerNorm(5), nn.Dropout(0.5), nn.Linear(5, 2))

loss = nn.functional.cross_entropy(layer(x), torch.tensor([0, 1, 0, 1])) + torch.einsum("ij,jk->ik", x, w).mean()
loss.backward()
with torch.autocast("cpu", dtype=torch.bfloat16):
    layer(x).float().sum().backward()
with torch.no_grad():
    w -= 0.1 * w.grad
    torch.add(x, 1.0, out=torch.empty(4, 3))
    torch._foreach_mul_([x, w], 0.5)
    x.t().reshape(12).clamp_(min=0).unsafe_split(3)
with torch.inference_mode():
    layer(x).softmax(-1)
    torch.ones(2, 3) @ x.t()
print(torch.func.vmap(torch.sin)(x).sum().item())
print(torch.func.grad(lambda v: (v * v).sum())(x).sum().item())
print(torch.func.vmap(torch.func.grad(lambda v: v.exp().sum()))(x).sum().item())


@torch.library.custom_op("numsan_test::twice", mutates_args=())
def twice(t: torch.Tensor) -> torch.Tensor:
    return t * 2


@torch.library.custom_op("numsan_test::half_", mutates_args={"t"})
def half_(t: torch.Tensor) -> None:
    t.mul_(0.5)


half_(twice(x))
torch.view_as_real(torch.fft.fft(x).conj().resolve_conj()).abs()
for bad in (lambda: x @ x, lambda: x.add_(torch.ones(7)), lambda: torch.log(x, out=torch.ones(1, dtype=torch.int64))):
    try:
        bad()
    except RuntimeError as error:
        print(str(error).splitlines()[0])
double = torch.autograd.grad(w.pow(3).sum(), w, create_graph=True)[0]
double.sum().backward()
optimizer = torch.optim.AdamW(layer.parameters(), foreach=True)
optimizer.step()
print(loss.item(), w.sum().item(), [p.sum().item() for p in layer.parameters()])
