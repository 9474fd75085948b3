"""What the runs show: whether the finding was reproduced, and which of the mechanisms that only a replay can tell."""
from dataclasses import dataclass

import torch

import comparison
import op_calls
import reversal


@dataclass
class Shown:
    """A mechanism, by its id in mechanisms.def, and what shows it."""

    mechanism: str
    because: str


def number(value):
    return f"{value:.6g}"


def places(count):
    return f"{count} value" + ("" if count == 1 else "s")


def of_places(some, count, now="are"):
    """"3 of 4 values that are", "1 of 1 value that is"; `now` is "were" of what was."""
    one = {"are": "is", "were": "was"}[now]
    return f"{some} of {places(count)} that {now if count != 1 else one} not finite"


def are(count):
    return "is" if count == 1 else "are"


def dtype_name(dtype):
    return str(dtype).removeprefix("torch.")


class Verdict:
    """Judges the runs of a Replay. `shown` has mechanisms, `notes` other sentences about what was seen."""

    def __init__(self, replay):
        self.replay = replay
        self.bad = [comparison.is_bad(result) for result in replay.reference]
        self.bad_count = sum(int(bad.sum()) for bad in self.bad)
        self.reproduced, self.outcome = self._reproduced()
        self.shown, self.notes = [], list(replay.operands.notes)
        self._race()
        self._hardware()
        self._kernel()
        self._precision()
        self._zeros()
        self._order()

    def _reproduced(self):
        first, device = self.replay.first.agreement, self.replay.device
        where = f"on {device}" + ("" if self.replay.here else f", as {self.replay.dump.device} is not here")
        if op_calls.leaves_memory_unwritten(self.replay.dump.op):
            return False, "it gives memory that nothing has written: what that held is not in the dump"
        if self.replay.dumped is None:
            return self._by_counts(where)
        if first.why:
            return False, f"the operator gives {first.why} {where}"
        if not first.places:
            healed = of_places(first.only_reference, self.bad_count, "were")
            healed += f" {are(first.only_reference)} finite {where}"
            return False, healed + (f", and {first.only_run} others are not" if first.only_run else "")
        if self.bad_count:
            exactly = "" if first.close else "; other values differ"
            what = "1 value is not finite, as in the program" if self.bad_count == 1 else \
                f"{self.bad_count} values are not finite, the same as in the program"
            return True, what + exactly
        if first.close:
            return True, "all values are as in the program, and all of them are finite"
        return False, f"{places(first.differing)} differ from the program's {where}"

    def _by_counts(self, where):
        """The results were left out of the dump: the finding says how many of them were bad."""
        wanted = {"nan": 0, "pos_inf": 0, "neg_inf": 0}
        outputs = self.replay.dump.finding.get("outputs")
        for output in outputs if isinstance(outputs, list) else []:
            for name in wanted:
                value = output.get(name, 0) if isinstance(output, dict) else 0
                wanted[name] += value if isinstance(value, int) else 0
        found = comparison.counts(self.replay.first.results)
        text = "{nan} nan, {pos_inf} +inf, {neg_inf} -inf"
        if wanted == found and any(found.values()):
            return True, f"as many values are not finite {where} as the finding says: {text.format(**found)}"
        return False, (f"the dump has no results, and {text.format(**found)} {where} are not the "
                       f"{text.format(**wanted)} of the finding")

    def _healed(self, run):
        """Where a value of the program's is bad and that of a run is finite, one mask a result; None without a run."""
        if run is None or run.agreement is None or run.agreement.why:
            return None
        return [bad & ~comparison.is_bad(result) for bad, result in zip(self.bad, run.results)]

    def _race(self):
        repeats = self.replay.run("repeats")
        if repeats is None or not repeats.differing or op_calls.leaves_memory_unwritten(self.replay.dump.op):
            return
        agreement = repeats.agreement
        if agreement.only_run or agreement.only_reference:
            what = "not the same values are finite in all of them"
        else:
            what = f"by up to {number(agreement.difference)}; the same values are finite in all of them"
        self.shown.append(Shown("RACE", f"{repeats.differing} of {repeats.count} repeats differ from the first run of "
                                        f"the same operands on {self.replay.device}, {what}"))

    def _hardware(self):
        replay = self.replay
        if self.shown or replay.dumped is None or not replay.here or replay.run("repeats") is None:
            return
        if replay.random and not replay.dump.rng or op_calls.leaves_memory_unwritten(replay.dump.op):
            return
        first = replay.first.agreement
        if first.close or first.why:
            return
        repeats = replay.run("repeats")
        how = f"{places(max(first.differing, 1))} of the program's result differ from what the same operands give on " \
              f"{replay.device} now, in {repeats.count + 1} equal runs"
        if replay.dump.torch_version and replay.dump.torch_version != torch.__version__:
            self.notes.append(f"{how}; the program had torch {replay.dump.torch_version}, this is {torch.__version__}")
            return
        self.shown.append(Shown("HW", how))

    def _kernel(self):
        """The operator's kernel against another one of the same element type, and float64 for a third opinion."""
        replay = self.replay
        if self.shown or not self.bad_count:
            return
        other, name = replay.run("cpu"), "on the CPU"
        if not replay.here:
            other = replay.first
        elif other is None and not reversal.sums_up(replay.operands):
            other, name = replay.run("contiguous"), "of contiguous operands"
        healed, wide = self._healed(other), self._representable()
        if healed is None or wide is None:
            return
        both = sum(int((a & b).sum()) for a, b in zip(healed, wide))
        if both and (self.reproduced or not replay.here):
            absent = "" if replay.here else (f"; {replay.dump.device} is not here, so that whether it does so every "
                                             "time was not seen")
            which = f"{of_places(both, self.bad_count)} on {replay.dump.device}"
            self.shown.append(Shown("KERN", f"{which} {are(both)} finite {name}, in the same type, and in "
                                            f"float64{absent}"))

    def _representable(self):
        """Where float64 is finite and within the result's type, though the program's value is not; or None."""
        wide = self.replay.run("float64")
        healed = self._healed(wide)
        if healed is None:
            return None
        masks = []
        for mask, result, reference in zip(healed, wide.results, self.replay.reference):
            if not (reference.dtype.is_floating_point or reference.dtype.is_complex):
                masks.append(torch.zeros_like(mask))
                continue
            size = comparison.exact(result).abs()
            size = size.amax(-1) if result.is_complex() else size
            masks.append(mask & (size <= largest_of(reference.dtype)))
        return masks

    def _precision(self):
        wide, healed = self._representable(), self._healed(self.replay.run("float64"))
        if wide is None or not self.bad_count:
            return
        within, finite = sum(int(mask.sum()) for mask in wide), sum(int(mask.sum()) for mask in healed)
        names = sorted({dtype_name(result.dtype) for result, bad in zip(self.replay.reference, self.bad) if bad.any()})
        kind = " and ".join(names)
        if within and self.reproduced and not any(shown.mechanism == "KERN" for shown in self.shown):
            which = f"{of_places(within, self.bad_count)} in {kind}"
            self.shown.append(Shown("PREC", f"{which} {are(within)} finite in float64, and within {kind}'s range"))
        if finite > within:
            beyond = finite - within
            self.notes.append(f"{places(beyond)} {are(beyond)} finite in float64 and beyond {kind}'s "
                              f"range, up to {number(comparison.largest(self.replay.run('float64').results))}")
        if not finite and self.reproduced:
            self.notes.append("float64 has the same non-finite values: the operands make them, not the type")

    def _zeros(self):
        """What findings about values that a type flushed are about: no value of theirs is bad."""
        wide = self.replay.run("float64")
        if wide is None or wide.agreement.why or self.bad_count or not self.reproduced:
            return
        lost, zeros, most = 0, 0, 0.0
        for result, reference in zip(wide.results, self.replay.reference):
            zero = comparison.exact(reference) == 0
            exact = comparison.exact(result).abs().where(zero, torch.zeros((), dtype=torch.float64))
            if reference.dtype.is_floating_point or reference.dtype.is_complex:
                lost, zeros = lost + int((exact != 0).sum()), zeros + int(zero.sum())
                most = max(most, float(exact.max()) if exact.numel() else 0.0)
        if lost:
            self.notes.append(f"{lost} of {zeros} zero{'' if zeros == 1 else 's'} {are(lost)} not zero in float64, of "
                              f"magnitudes up to {number(most)}: the type lost what they were")

    def _order(self):
        turned = self.replay.run("reversed")
        if turned is None or turned.agreement.why or turned.agreement.places or not self.reproduced:
            return
        healed = turned.agreement.only_reference
        self.notes.append(f"the order decides: {of_places(healed, self.bad_count)} {are(healed)} finite with the "
                          f"operands reversed, and {turned.agreement.only_run} others are not")


def largest_of(dtype):
    if dtype == torch.complex32:
        return torch.finfo(torch.float16).max
    return torch.finfo(dtype).max
