"""Baseline: a scan of all parameters after every step. It names a parameter, late by design."""
from watch import after_step, kinds, name_parameters, worst


def attach(run):
    """Reports the first parameter that is not finite, at the line that called step()."""
    names = name_parameters()

    def scan(parameters):
        if run.findings:
            return
        for index, value in enumerate(parameters):
            found = kinds(value)
            if found:
                name = names.get(id(value), f"parameter {index}")
                run.find("parameter", "optimizer", worst(found), run.line(), module=name)
                return

    after_step(scan)
