"""Higher-order operators, whose dispatch keys torch computes in Python. Arguments: on which thread, and which ones."""
import sys
import threading
import warnings

import torch

warnings.simplefilter("ignore")


def cond():
    x = torch.linspace(-1, 1, 5, requires_grad=True)
    y = torch.cond(x.sum() > 3, lambda a: a.sin(), lambda a: a.cos() * 2, (x,))
    y.sum().backward()
    return y.tolist(), x.grad.tolist()


def while_loop():
    from torch._higher_order_ops.while_loop import while_loop as loop
    return [part.tolist() for part in loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2),
                                           (torch.tensor(0), torch.ones(2)))]


def flex_attention():
    from torch.nn.attention.flex_attention import flex_attention as attend
    q = torch.linspace(-1, 1, 64).view(1, 1, 8, 8)
    return attend(q, q, q, score_mod=lambda score, b, h, i, j: score + (i - j)).sum(-1).tolist()


class Branches(torch.nn.Module):
    def forward(self, a):
        return torch.cond(a.sum() > 0, lambda b: b.sin(), lambda b: b.cos(), (a,))


def exported():
    return torch.export.export(Branches(), (torch.ones(2, 4),)).module()(torch.full((2, 4), 0.5)).tolist()


def compiled():
    x = torch.linspace(-1, 2, 5, requires_grad=True)
    y = torch.compile(Branches(), backend="aot_eager")(x)
    y.sum().backward()
    return y.tolist(), x.grad.tolist()


def run():
    for name in sys.argv[2:]:
        print(name, globals()[name](), flush=True)


if sys.argv[1] == "main":
    run()
else:
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
print([finder for finder in sys.meta_path if "numsan" in str(finder)])
