"""Runs a dumped operator again in several ways, and compares each with what the program got."""
import time
from dataclasses import dataclass

import torch

import comparison
import op_calls
import reversal
from operands import Operands, Setting, available

REPEATS = 8  # besides the first; a race that shows in one run of three is missed by these once in 25 times
SECONDS_OF_REPEATS = 5.0


@dataclass
class Run:
    """One way of running the operator. `results` is None where it did not run, and `why` says why not."""

    name: str  # again, repeats, cpu, float64, reversed, contiguous
    about: str  # for people
    results: list | None = None
    agreement: comparison.Agreement | None = None
    why: str = ""
    count: int = 1
    differing: int = 0  # of repeats


class Replay:
    """All runs of the operator of a dump. CannotRun where it cannot be run at all."""

    def __init__(self, dump):
        self.dump = dump
        self.operands = Operands(dump, dump.op)
        self.device = dump.device if available(dump.device) else "cpu"
        self.here = self.device == dump.device
        self.random = op_calls.is_random(self.operands.operator)
        if dump.threads and dump.threads <= 4096:
            torch.set_num_threads(dump.threads)
        self.dumped = self._dumped_results()
        self.largest = self.operands.largest() if reversal.sums_up(self.operands) else []
        self.first = self._run("again", f"on {self.device} again", Setting(self.device))
        if self.first.results is None:
            raise op_calls.CannotRun(self.first.why)
        self.reference = self.dumped if self.dumped is not None else self.first.results
        self.first.agreement = self._compare(self.first.results)
        self.runs = [self.first, self._repeats()]
        if torch.device(self.device).type != "cpu":
            self.runs.append(self._same_type("cpu", "on the CPU", Setting()))
        self.runs.append(self._wide())
        self.runs.append(self._reversed())
        if not self.operands.is_plain():
            self.runs.append(self._same_type("contiguous", "operands contiguous",
                                             Setting(self.device, contiguous=True)))

    def run(self, name):
        """The run of that name, None where it was not run."""
        return next((run for run in self.runs if run.name == name and run.results is not None), None)

    def _dumped_results(self):
        found = []

        def walk(result):
            if result.kind == "tensor":
                found.append(self.dump.tensor(result))
            elif result.kind == "list":
                for item in result.value:
                    walk(item)
            elif result.kind == "left_out":
                found.append(None)

        for result in self.dump.op.results:
            walk(result)
        return found if found and None not in found else None

    def _compare(self, results):
        return comparison.compare(results, self.reference, self.largest)

    def _run(self, name, about, setting):
        try:
            return Run(name, about, self.operands.run(setting))
        except op_calls.CannotRun as error:
            return Run(name, about, why=str(error))

    def _same_type(self, name, about, setting):
        if self.random and name == "cpu":
            return Run(name, about, why="it draws random numbers, which are others on another device")
        run = self._run(name, about, setting)
        if run.results is not None:
            run.agreement = self._compare(run.results)
        return run

    def _repeats(self):
        run = Run("repeats", "repeated", self.first.results, comparison.Agreement(), count=0)
        if self.random and not self.dump.rng:
            return Run("repeats", "repeated", why="it draws random numbers, and the dump has not their state")
        end = time.monotonic() + SECONDS_OF_REPEATS
        while run.count < REPEATS and (run.count == 0 or time.monotonic() < end):
            again = self._run("repeats", "", Setting(self.device))
            if again.results is None:
                return again
            agreement = comparison.compare(again.results, self.first.results, self.largest)
            run.count += 1
            run.differing += not agreement.bits
            run.agreement.merge(agreement)
        return run

    def _wide(self):
        about = "in float64"
        if self.operands.is_wide():
            return Run("float64", about, why="the operands are in it already")
        if self.random:
            return Run("float64", about, why="it draws random numbers, which are others in another type")
        run = Run("float64", about)
        problem = ""
        for device in dict.fromkeys((self.device, "cpu")):
            run = self._run("float64", about, Setting(device, dtype=torch.float64))
            if run.results is not None:
                run.agreement = self._compare(run.results)
                return run
            problem = problem or run.why
        run.why = problem
        return run

    def _reversed(self):
        about = "operands reversed"
        reverse, back = reversal.reversal_of(self.operands)
        if reverse is None:
            return Run("reversed", about, why="no order of its operands is known that changes nothing")
        run = self._run("reversed", about, Setting(self.device, reverse=reverse))
        if run.results is not None:
            run.results = reversal.turned_back(run.results, back)
            run.agreement = self._compare(run.results)
        return run
