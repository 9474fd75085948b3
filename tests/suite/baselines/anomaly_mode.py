"""Baseline: set_detect_anomaly(True). Sees NaN in a backward pass, and ends the program there."""
import re
import warnings

import torch


def attach(run):
    """Turns the mode on and reads the warning with the forward trace, and the error."""
    trace = []
    show = warnings.showwarning

    def keep(message, *args, **kwargs):
        text = str(message)
        if "Traceback of forward call" in text:
            trace.append(text)
        else:
            show(message, *args, **kwargs)

    warnings.showwarning = keep
    torch.autograd.set_detect_anomaly(True)

    def forward_line():
        """Innermost line of the program in the first trace, that of the failing node."""
        place = re.compile(r'File "%s", line (\d+)' % re.escape(run.program))
        lines = place.findall(trace[0]) if trace else []
        return int(lines[-1]) if lines else None

    def wrap(function):
        def wrapped(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except RuntimeError as error:
                said = re.search(r"Function '(\w+)' returned nan values", str(error))
                if said is not None and not run.findings:
                    run.find(said.group(1), "backward", "nan", forward_line() or run.line())
                    run.extra["stopped"] = True
                raise
        return wrapped

    torch.autograd.backward = wrap(torch.autograd.backward)
    torch.autograd.grad = wrap(torch.autograd.grad)
