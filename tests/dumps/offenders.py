"""Programs whose bug is one operator of a kind: offenders.py NAME. Each makes a bad value once, and it escapes."""
import os
import sys
import threading

import torch


def forward():
    x = torch.tensor([[1.0, -1.0], [2.0, 3.0]])
    print(float(x.log().sum()))


def in_place():
    with torch.no_grad():
        x = torch.tensor([4.0, -4.0, 9.0])
        x.sqrt_()
    print(float(x.sum()))


def same_operand():
    x = torch.tensor([1.0, 0.0, 2.0])
    x.div_(x)
    print(float(x.sum()))


def shared_views():
    memory = torch.tensor([1.0, 0.0, 4.0, 0.0, 6.0, 7.0])
    memory[0::2].div_(memory[1::2])
    print(float(memory.sum()))


def strided():
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4).t()[:, ::2]
    print(float(x.reciprocal().sum()))


def expanded():
    x = torch.tensor([[-1.0], [2.0]]).expand(2, 5)
    print(float(x.log().sum()))


def backward():
    x = torch.tensor([0.0, 4.0, 9.0], requires_grad=True)
    (x * 1.0).sqrt().sum().backward()
    torch.optim.SGD([x], lr=0.1).step()


def backward_of_saved():
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    y = torch.tensor([0.5, 0.5])
    x.pow(y).sum().backward()
    torch.optim.SGD([x], lr=0.1).step()


def optimizer():
    weight = torch.nn.Parameter(torch.ones(3))
    made = torch.optim.Adam([weight], lr=0.1, eps=0.0, foreach=False)
    for _ in range(2):
        weight.grad = torch.tensor([1.0, 0.0, 2.0])
        made.step()


def optimizer_of_lists():
    weights = [torch.nn.Parameter(torch.ones(size)) for size in (2, 3)]
    made = torch.optim.Adam(weights, lr=0.1, eps=0.0, foreach=True)
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    made.step()


def numbers_and_none():
    layer = torch.nn.Conv2d(1, 2, 3, stride=2, padding=1, bias=False)
    with torch.no_grad():
        layer.weight.fill_(3e38)
    print(float(layer(torch.ones(1, 1, 4, 4) * 2).sum()))


def number():
    print(float(torch.tensor([0.0, 2.0]).pow(-0.5).sum()))


def half():
    print(float(torch.tensor([1.0, 20.0], dtype=torch.float16).exp().float().sum()))


def bfloat16():
    print(float(torch.tensor([1.0, 200.0], dtype=torch.bfloat16).exp().float().sum()))


def float8():
    x = torch.tensor([1.0, 1e6]).to(torch.float8_e5m2)
    print(float(x.float().sum()))


def of_float8():
    x = torch.tensor([1.0, 0.0]).to(torch.float8_e4m3fn)
    print(float(x.to(torch.float32).log().sum()))


def complex128():
    x = torch.tensor([1 + 1j, 0j], dtype=torch.complex128)
    print(x.reciprocal().abs().sum().item())


def random_numbers():
    torch.manual_seed(7)
    torch.rand(3)
    print(float(torch.normal(torch.full((64,), 3.0), torch.full((64,), 3e38)).sum()))


def large():
    x = torch.full((4096,), -1.0)
    print(float(x.log().sum()))
    print(float(torch.tensor([-1.0]).sqrt().sum()))


def absorbed():
    """Bad values that are masked away, many times, before the one that is not."""
    for step in range(400):
        x = torch.tensor([float(step), -1.0])
        torch.where(x > 0, x.log(), torch.zeros(2))
    print(float(torch.tensor([-3.0]).sqrt().sum()))


def child():
    if (pid := os.fork()) == 0:
        forward()
        sys.exit(0)  # not os._exit: the child writes its report
    os.waitpid(pid, 0)


def threads():
    start = threading.Barrier(4)

    def work(number):
        start.wait()
        for _ in range(20):
            (torch.ones(number + 2) * 2.0).log()
        print(float(torch.tensor([-1.0] * (number + 1)).log().sum()))

    all_of_them = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for one in all_of_them:
        one.start()
    for one in all_of_them:
        one.join()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
