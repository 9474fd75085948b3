"""Where in a program the oracle is: lines on the Python stack, and the forward line of an autograd
node."""
import re
import sys

import torch

ENGINE = "_engine_run_backward"


def stack_lines(program):
    """(lines inside the running backward, all lines) of the program on the stack, innermost first."""
    inside, every, frame, left = [], [], sys._getframe(1), False
    while frame is not None:
        code = frame.f_code
        if code.co_name == ENGINE:
            left = True
        if code.co_filename == program:
            every.append(frame.f_lineno)
            if not left:
                inside.append(frame.f_lineno)
        frame = frame.f_back
    return (inside if left else []), every


def node_lines(node, program):
    """The lines that made an autograd node, then its parents' (anomaly mode keeps both)."""
    pattern = re.compile(rf'File "{re.escape(program)}", line (\d+)')
    lines = []
    while node is not None:
        found = pattern.findall("".join(node.metadata.get("traceback_", [])))
        if found:
            lines.append(int(found[-1]))
        node = node.metadata.get("parent_")
    return lines


def here(program, in_optimizer):
    """(acceptable lines of the running op, best first; the autograd node it runs in, or None)."""
    node = torch._C._current_autograd_node()
    inside, every = stack_lines(program)
    if node is None:
        return every[:2 if in_optimizer else 1], None
    return (inside[:1] or node_lines(node, program) or every[:1]), node.name()
