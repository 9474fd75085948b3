"""Bad values of every kind, one after the other; none of them gets into anything that matters."""
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        hidden = self.layer(x)
        return torch.log(hidden - hidden)  # MODULE


def plain(x):
    y = x / (x - x); z = y + 1  # PLAIN
    return z


def in_place(values):
    values.div_(torch.zeros(3))  # IN-PLACE
    return values


def lists(some):
    return torch._foreach_div(some, [torch.zeros_like(one) for one in some])  # LISTS


def backward():
    x = torch.zeros(2, requires_grad=True)
    root = x.sqrt()  # ROOT
    root.sum().backward()  # BACKWARD
    return x.grad


def optimizer():
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.full((2,), 3e38)
    torch.optim.SGD([weight], lr=10.0).step()  # OPTIMIZER
    return weight


def masked(x):
    bias = torch.zeros(2, 2).masked_fill(torch.tensor([[True, False]]), float("-inf"))
    return torch.softmax(x + bias, -1)


torch.manual_seed(0)
model = Model()
model.register_buffer("seen", torch.tensor([1.0, float("nan")]))
x = torch.ones(2)
masked(x)
plain(x)
model(x)
in_place(torch.tensor([1.0, 2.0, 4.0]))
backward()
plain(x)  # a second time
optimizer()
lists([torch.ones(1), torch.full((2,), 2.0), torch.full((3,), 3.0)])
print("the end")
