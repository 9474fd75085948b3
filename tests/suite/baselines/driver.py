"""Runs one program under one baseline detector: driver.py BASELINE PROGRAM OUT.json

The program keeps its stdout. OUT.json gets {"baseline", "program", "steps", "failed", "findings"};
failed is the error that ended the program against the will of the baseline, else null; "stopped" is
true where it meant to.
"""
import importlib
import json
import os
import pathlib
import runpy
import sys

HERE = pathlib.Path(__file__).resolve().parent
# name: what tables call it
BASELINES = {
    "anomaly_mode": "`set_detect_anomaly(True)`",
    "module_hooks": "hooks on module outputs",
    "hooks_and_parameters": "hooks on outputs and gradients, parameter scan",
    "dispatch_mode": "`TorchDispatchMode` on every op",
    "frames": "frames of magnitudes, module by module",
    "parameter_scan": "scan of parameters after each step",
    "loss_only": "check of the loss",
    "rules": "rules on training dynamics",
    "dynamics_learner": "learner on training dynamics",
    "frequency_prior": "always the most common answer",
}


def watch_program(baseline, program):
    """Runs the program until it ends or is stopped; returns the report."""
    from watch import Run, count_steps
    run = Run(program)
    detector = importlib.import_module(baseline)
    finish = detector.attach(run)
    count_steps(run)
    home, failed = os.getpid(), None
    sys.argv = [run.program]
    sys.path[0] = os.path.dirname(run.program)
    try:
        runpy.run_path(run.program, run_name="__main__")
    except SystemExit as stop:
        failed = f"exit status {stop.code}" if stop.code else None
        if os.getpid() != home:
            raise
    except Exception as error:
        failed = None if run.extra.get("stopped") else f"{type(error).__name__}: {error}"
    if os.getpid() != home:
        os._exit(1)
    if finish is not None:
        finish()
    return {"baseline": baseline, "program": run.program, "steps": run.step, "failed": failed,
            "findings": run.findings, **run.extra}


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in BASELINES:
        print(f"usage: driver.py BASELINE PROGRAM OUT.json\nbaselines: {' '.join(BASELINES)}",
              file=sys.stderr)
        return 2
    baseline, program, out = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
    sys.path.insert(1, str(HERE))
    report = watch_program(baseline, program)
    out.write_text(json.dumps(report, indent=1) + "\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
