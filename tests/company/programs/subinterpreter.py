"""A training, then an import of torch in another interpreter. What comes of that is torch's matter, and the same with
numsan. (With nothing of torch in the main interpreter the import never ends, with numsan or without.)"""
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import sys

import small_training

ATTEMPT = "import torch; print('sum', (torch.ones(3) * 2).sum().item(), flush=True)"

training = small_training.Training().steps(4)
small_training.show_and_go_bad(training)
sys.stdout.flush()
made = interpreters.create()
try:
    failed = interpreters.run_string(made, ATTEMPT)
    print("failed", failed.formatted if failed else None)
except Exception as error:
    print("failed", type(error).__name__, error)
try:
    training.step()
    print("trained on")
except RuntimeError as error:
    print("failed", str(error).split(". ")[0])
