"""Checkpointing, double backward, function transforms, a tensor subclass and sparse tensors in one program."""
import torch
from state import show
from torch import nn
from torch.func import functional_call, grad, jvp, vmap
from torch.utils.checkpoint import checkpoint


class Tagged(torch.Tensor):
    """A tensor that is carried by __torch_function__."""


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(20):
    x = torch.randn(12, 5, requires_grad=True)
    value = checkpoint(model, x, use_reentrant=step == 1)
    slope, = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    loss = value.pow(2).mean() + (slope.norm(dim=1) - 1.0).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())

model.eval()
parameters = {name: p.detach() for name, p in model.named_parameters()}


def sample_loss(values, row):
    """Loss of one row, as a function of the parameters."""
    return functional_call(model, values, (row,)).pow(2).sum()


x = torch.randn(6, 5)
each = vmap(grad(sample_loss), in_dims=(None, 0))(parameters, x)
value, tangent = jvp(lambda t: functional_call(model, parameters, (t,)), (x,), (torch.ones_like(x),))
tagged = (x.as_subclass(Tagged) * 2.0 + 1.0).exp()
print(type(tagged).__name__, tagged.sum().item())
sparse = torch.sparse_coo_tensor(torch.tensor([[0, 2, 2], [1, 0, 4]]), torch.tensor([1.0, 2.0, 3.0]), (3, 5)).coalesce()
product = torch.sparse.mm(sparse, torch.randn(5, 2))
embedding = nn.Embedding(10, 3, sparse=True)
embedding(torch.tensor([1, 4, 1])).pow(2).sum().backward()
torch.optim.SparseAdam(embedding.parameters(), lr=0.1).step()
half = torch.randn(4, dtype=torch.complex64).abs()
show(model, *each.values(), value, tangent, tagged.as_subclass(torch.Tensor), sparse, product, embedding.weight, half)
