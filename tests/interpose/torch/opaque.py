"""Results that cannot be looked at, by reason."""
import torch


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        self = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        self.inner = inner
        return self

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return cls(function(*(a.inner if isinstance(a, cls) else a for a in args), **(kwargs or {})))


plain = torch.ones(3)
sparse = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
meta = torch.empty(3, device="meta")
wrapped = Wrapped(plain)
nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
print("made")
for _ in range(3):
    sparse * 2
for _ in range(5):
    meta * 2
meta.mul_(2)
for _ in range(7):
    wrapped * 2
for _ in range(2):
    nested * 2
plain * 2
