"""How results of two runs of an operator agree: bit by bit, within rounding, or not."""
from dataclasses import dataclass

import torch

# Two orders of the same float operations differ by a few units of the last place of the largest value on the way.
ROUNDINGS = 32


def exact(values):
    """Real numbers as float64, which holds all narrower types; complex ones as pairs."""
    values = values.detach().cpu()
    if values.dtype == torch.complex32:
        values = values.to(torch.complex64)
    if values.is_complex():
        values = torch.view_as_real(values)
    return values.to(torch.float64) if values.dtype.is_floating_point else values


def is_bad(values):
    """Where values are nan or infinite, element for element of the tensor; a complex number is bad in either part."""
    plain = exact(values)
    if not plain.dtype.is_floating_point:
        return torch.zeros(values.shape, dtype=torch.bool)
    bad = ~torch.isfinite(plain)
    return bad.any(-1) if values.is_complex() else bad


def counts(tensors):
    """{nan, pos_inf, neg_inf} over results."""
    total = {"nan": 0, "pos_inf": 0, "neg_inf": 0}
    for values in map(exact, tensors):
        if values.dtype.is_floating_point:
            total["nan"] += int(values.isnan().sum())
            total["pos_inf"] += int((values == float("inf")).sum())
            total["neg_inf"] += int((values == float("-inf")).sum())
    return total


def largest(tensors):
    """The largest finite magnitude, 0 where there is none."""
    most = 0.0
    for values in map(exact, tensors):
        if values.dtype.is_floating_point and values.numel():
            most = max(most, float(torch.where(values.isfinite(), values.abs(), torch.zeros_like(values)).max()))
    return most


def zeros(tensors):
    """How many zeros there are; a complex number counts as two."""
    return sum(int((exact(values) == 0).sum()) for values in tensors)


def precision_of(dtype):
    """Half the distance between 1 and the next number, of what an element type resolves."""
    if dtype == torch.complex32:
        return torch.finfo(torch.float16).eps
    if dtype == torch.float8_e8m0fnu:
        return 1.0
    return torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else 0.0


@dataclass
class Agreement:
    """Of one run with a reference, over all results."""

    bits: bool = True  # every bit, but for the payload of a nan
    close: bool = True  # the same non-finite values, and the others within rounding
    places: bool = True  # non-finite at the same places
    only_reference: int = 0  # places that are bad in the reference alone
    only_run: int = 0
    difference: float = 0.0  # the largest of values that are finite in both
    differing: int = 0  # values beyond rounding
    why: str = ""  # why they cannot be compared

    def level(self):
        return "bits" if self.bits else "tolerance" if self.close else "no"

    def merge(self, other):
        self.bits &= other.bits
        self.close &= other.close
        self.places &= other.places
        self.only_reference += other.only_reference
        self.only_run += other.only_run
        self.difference = max(self.difference, other.difference)
        self.differing += other.differing
        self.why = self.why or other.why


def compare_one(run, reference, largest=None):
    """Agreement of two tensors. `largest`: bound of what was added up on the way, where that is known."""
    if run.shape != reference.shape or run.is_complex() != reference.is_complex():
        return Agreement(False, False, False, why=f"sizes {list(run.shape)} instead of {list(reference.shape)}")
    a, b = exact(run), exact(reference)
    if not b.dtype.is_floating_point or not a.dtype.is_floating_point:
        differing = int((a != b).sum())
        difference = float((a.to(torch.float64) - b.to(torch.float64)).abs().max()) if differing else 0.0
        return Agreement(not differing, not differing, True, 0, 0, difference, differing)
    bad_a, bad_b = is_bad(run), is_bad(reference)
    same = ((a == b) & (torch.signbit(a) == torch.signbit(b))) | (a.isnan() & b.isnan())
    finite = torch.isfinite(a) & torch.isfinite(b)
    distance = torch.where(finite, (a - b).abs(), torch.zeros_like(a))
    kinds = bool((same | finite).all())  # nan for nan, each infinity for itself
    scale = torch.maximum(a.abs(), b.abs()).where(finite, torch.zeros_like(a))
    scale = torch.full_like(scale, float(scale.max())) if scale.numel() else scale
    if largest is not None and largest.shape == b.shape:
        bound = largest.to(torch.float64)
        scale = torch.maximum(scale, torch.where(torch.isfinite(bound), bound, torch.zeros_like(bound)))
    precision = max(precision_of(reference.dtype), precision_of(run.dtype))
    beyond = distance > ROUNDINGS * precision * scale
    return Agreement(bits=bool(same.all()) and run.dtype == reference.dtype, close=kinds and not bool(beyond.any()),
                     places=bool((bad_a == bad_b).all()), only_reference=int((bad_b & ~bad_a).sum()),
                     only_run=int((bad_a & ~bad_b).sum()),
                     difference=float(distance.max()) if distance.numel() else 0.0,
                     differing=int((beyond | ~(same | finite)).sum()))


def compare(run, reference, largest=()):
    """Agreement of the results of a run with those of another."""
    if len(run) != len(reference):
        return Agreement(False, False, False, why=f"{len(run)} results instead of {len(reference)}")
    total = Agreement()
    for i, (values, wanted) in enumerate(zip(run, reference)):
        total.merge(compare_one(values, wanted, largest[i] if i < len(largest) else None))
    return total
