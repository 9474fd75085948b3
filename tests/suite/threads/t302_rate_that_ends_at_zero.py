"""Adam with a rate that is a tensor divides by the rate before it adds epsilon; in the last step the rate is zero."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt=N2 birth_op=aten::div,aten::div_ kind=nan,-inf
# label: first_step=29
# label: severity=error loss_stays_finite=yes dtype=fp32 model=embedding family=adam_zero_rate needs= fragile=no
# label: thread=pytorch/pytorch#186444 uses= fix_kind=reorder
# fix: epsilon goes to the root of the second moment before the rate comes in, and the rate scales the numerator
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class CapturableAdam(torch.optim.Optimizer):
    """All numbers of a step are tensors, so that a graph of kernels can be replayed with other ones."""

    def __init__(self, parameters, lr, betas=(0.9, 0.99), eps=1e-8):
        super().__init__(parameters, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            slow, fast = group["betas"]
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["step"] = torch.zeros(())
                    state["mean"], state["square"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
                state["step"] += 1
                state["mean"].lerp_(parameter.grad, 1 - slow)
                state["square"].mul_(fast).addcmul_(parameter.grad, parameter.grad, value=1 - fast)
                minus_rate = -group["lr"] / (1 - slow ** state["step"])
                root = state["square"].sqrt() / (1 - fast ** state["step"]).sqrt()
                if FIXED:
                    parameter.addcdiv_(state["mean"] * minus_rate, root + group["eps"])
                else:
                    denominator = root / minus_rate + group["eps"] / minus_rate  # BUG
                    parameter.addcdiv_(state["mean"], denominator)  # BUG-ALT


torch.manual_seed(126514)
words, head = nn.Embedding(50, 16), nn.Linear(16, 4)
rate = torch.tensor(0.01)
optimizer = CapturableAdam([*words.parameters(), *head.parameters()], lr=rate)
for step in range(30):
    rate.copy_(torch.tensor(0.01 * (1 - step / 29)))  # linear decay, to zero in the last step
    tokens = torch.randint(0, 40, (16, 6))  # the last ten words do not occur
    loss = nn.functional.cross_entropy(head(words(tokens).mean(dim=1)), tokens.sum(dim=1) % 4)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()  # BUG-ALT
print(f"loss {loss.item():.4f}, words {[round(v, 3) for v in words.weight[45, :3].tolist()]}")
