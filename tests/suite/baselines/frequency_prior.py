"""Baseline: always the most common answer, at the line that made the loss: the floor for the rest.

The frequencies come from the labels of the other programs of the suite, those of the program's own
family left out.
"""
from collections import Counter
import re

import torch

from labels import read_labels, suite_programs
from watch import around_backward


def attach(run):
    """Finds the line of the loss through the trace that anomaly mode keeps."""
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    place = re.compile(r'File "%s", line (\d+)' % re.escape(run.program))
    seen = []

    def remember(roots):
        node = roots[0].grad_fn
        made = place.findall("".join(node.metadata.get("traceback_", []))) if node else []
        seen.append(int(made[-1]) if made else run.line())

    around_backward(before=remember)

    def finish():
        own = read_labels(run.program).get("family")
        others = [read_labels(path) for path in suite_programs()]
        others = [label for label in others if own is None or label.get("family") != own]

        def common(key):
            return Counter(v for label in others for v in label.get(key, "").split(",")[:1] if v)

        ranked = common("category").most_common(2)
        total = sum(common("category").values())
        fallback = {"birth_op": "aten::log", "phase": "forward", "first_step": "0"}
        first = {key: (common(key).most_common(1) or [(value, 0)])[0][0]
                 for key, value in fallback.items()}
        run.step = int(first["first_step"])
        run.find(first["birth_op"], first["phase"], line=seen[0] if seen else None,
                 categories=[(name, round(count / total, 3)) for name, count in ranked])

    return finish
