"""A tensor subclass that computes with a tensor it keeps: the logarithm of a negative number inside its answer."""
import torch


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        self = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype,
                                                   requires_grad=requires_grad)
        self.inner = inner
        return self

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        inner = [a.inner if isinstance(a, cls) else a for a in args]
        result = function(*inner, **(kwargs or {}))
        return cls(result) if isinstance(result, torch.Tensor) else result


def score(x):
    return torch.log(x) * 2  # NaN


weight = Wrapped(torch.tensor([3.0, -1.0]), requires_grad=True)
scaled = weight + 1e-3
loss = score(scaled).mean()
loss.backward()
print("loss", loss.item())
