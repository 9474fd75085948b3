"""What the trainings here share: arguments, an update with what usually goes with it, evaluations, bits at the end."""
import argparse
import hashlib
import random

import numpy
import torch

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def arguments(seed):
    """Steps, the step of the bug and the type of autocast, after all random numbers were seeded."""
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=int)
    parser.add_argument("bug_step", type=int, nargs="?", default=-1)
    parser.add_argument("--autocast", choices=TYPES, default="float32")
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    random.seed(seed)
    return parser.parse_args()


def digest(tensors):
    """The start of the sha256 over the bytes of tensors, in order."""
    hasher = hashlib.sha256()
    for tensor in tensors:
        hasher.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return hasher.hexdigest()[:16]


def show(loss, *modules):
    """Prints the bits of the last loss, a tensor or a number, and hashes of all parameters and buffers."""
    print("loss", (loss.item() if torch.is_tensor(loss) else float(loss)).hex())
    for module in modules:
        print("module", digest(module.parameters()), digest(module.buffers()))
    print("random", digest([torch.get_rng_state()]))


class Loop:
    """AdamW with warm-up and clipping, autocast with a loss scaler where the type asks for one, averaged weights."""

    def __init__(self, model, args, rate, warm_up=20, decay=0.95):
        self.model = model.train()
        self.type = TYPES[args.autocast]
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: min(1.0, (step + 1) / warm_up))
        self.scaler = torch.amp.GradScaler("cpu", enabled=self.type == torch.float16, growth_interval=50)
        self.average = torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(decay))

    def autocast(self):
        return torch.autocast("cpu", dtype=self.type, enabled=self.type != torch.float32)

    def update(self, loss):
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        self.average.update_parameters(self.model)

    def leap(self, rate=1e30):
        """The next update has this learning rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def evaluate(self, measure):
        """Prints what `measure` says of the model, then of the average of its weights."""
        self.model.eval()
        with torch.no_grad(), self.autocast():
            print("model", float(measure(self.model)).hex())
        self.model.train()
        self.average.eval()
        with torch.inference_mode(), self.autocast():
            print("average", float(measure(self.average.module)).hex())
        self.average.train()

    def show(self, loss):
        show(loss, self.model, self.average)
