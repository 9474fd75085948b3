"""Lines that make NaN or an infinity out of small finite values, each in a way of its own."""
import torch


def log_of_negative(x):
    return (-x.abs() - 1).log()  # BIRTH


def zero_over_zero(x):
    zero = x * 0
    return zero / zero  # BIRTH


def root_at_zero(x):
    return (x * 0).sqrt()  # BIRTH


def overflow(x):
    return (x.abs() + 200).exp()  # BIRTH


def overflow_of_half(x):
    large = (x.abs() + 300).half()
    return (large * large).to(x.dtype)  # BIRTH


def empty_mean(x):
    return x.reshape(-1)[:0].mean() + x  # BIRTH


def in_place(x):
    y = x.detach().clone()
    y.sub_(y.abs() + 2).sqrt_()  # BIRTH
    return x + y


def norm_of_zeros(x):
    return x / (x * 0).norm()  # BIRTH


ALL = (log_of_negative, zero_over_zero, root_at_zero, overflow, overflow_of_half, empty_mean, in_place, norm_of_zeros)


def some(random, x):
    """Bad values of the shape of x, by one of the ways."""
    return random.choice(ALL)(x)


def absorbed(random, x):
    """A birth that gets nowhere: what is not finite is replaced."""
    y = some(random, x)
    return torch.where(torch.isfinite(y), y, torch.zeros_like(y))
