"""Baseline: isnan and isinf of what a backward pass starts from, as most training loops have it."""
from watch import around_backward, kinds, worst


def attach(run):
    """Reports the first loss that is not finite, at the line that asks for its gradient."""
    def check(roots):
        found = set() if run.findings else kinds(roots)
        if found:
            run.find("loss", "forward", worst(found), run.line())

    around_backward(before=check)
