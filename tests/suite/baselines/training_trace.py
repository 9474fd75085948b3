"""Statistics of a training run: one record per backward pass, of loss, weights and gradients.

Parameters are found by walking the graph below the loss, so that functional code is seen as well
as modules.
"""
import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._pytree import tree_leaves

from watch import around_backward, kinds

SQUASHING = (torch.nn.Sigmoid, torch.nn.Tanh)


def floats(values):
    """The non-empty dense floating-point tensors in a nest of values, as float32."""
    return [v.detach().float() for v in tree_leaves(values) if isinstance(v, torch.Tensor)
            and v.is_floating_point() and v.layout == torch.strided and v.numel()]


def leaves_below(roots):
    """The tensors that accumulate gradients below these roots, those nearest to the loss last."""
    found, todo, known = [], [root.grad_fn for root in roots], set()
    while todo:
        node = todo.pop(0)
        if node is None or node in known:
            continue
        known.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        todo += [parent for parent, _ in node.next_functions]
    return found[::-1]


def norm_ratio(first, last):
    """How much larger the first kernel's gradient is than the last one's."""
    first, last = first.norm().item(), last.norm().item()
    return first / last if last else 0.0


def describe(loss, leaves):
    """One record: figures only, nan and inf included."""
    record = {"loss": loss.float().mean().item(), "bad_loss": bool(kinds(loss)),
              "bad_weight": bool(kinds(leaves)), "bad_gradient": False}
    weights = floats(leaves)
    record["weight_max"] = max((w.abs().max().item() for w in weights), default=0.0)
    record["weight_variance"] = [w.var().item() for w in weights if w.numel() > 1 and w.dim() > 1]
    gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
    record["bad_gradient"] = bool(kinds(gradients))
    gradients = floats(gradients)
    kernels = [g for g in gradients if g.dim() > 1]
    record["gradient_max"] = max((g.abs().max().item() for g in gradients), default=0.0)
    record["kernel_gradient_means"] = [g.abs().mean().item() for g in kernels]
    total = sum(g.numel() for g in gradients)
    zeros = sum((g == 0).sum().item() for g in gradients)
    record["zero_gradients"] = zeros / total if total else 0.0
    record["first_gradient"] = kernels[0].norm().item() if kernels else 1.0
    record["gradient_ratio"] = norm_ratio(kernels[0], kernels[-1]) if len(kernels) > 1 else 1.0
    return record


class Trace:
    """Records of a run; what a forward pass shows joins the backward pass that follows."""

    def __init__(self, run):
        self.run = run
        self.records = []
        self.leaves = []
        self.clear()
        register_module_forward_pre_hook(self.module_called)
        register_module_forward_hook(self.module_done)
        register_optimizer_step_post_hook(self.stepped)
        around_backward(before=self.loss_made, after=self.gradients_made)
        self.rate = None

    def clear(self):
        self.seen = {"input_max": 0.0, "bad_input": False, "output_mean": 0.0, "saturated": 0.0}
        self.inside = 0

    def module_called(self, module, args):
        self.inside += 1
        if self.inside == 1:
            values = floats(args)
            self.seen["bad_input"] |= bool(kinds(values))
            sizes = [v.abs().max().item() for v in values]
            self.seen["input_max"] = max([self.seen["input_max"]] + sizes)
        if isinstance(module, SQUASHING):
            shares = [(v.abs() > 5).float().mean().item() for v in floats(args)]
            self.seen["saturated"] = max([self.seen["saturated"]] + shares)

    def module_done(self, module, args, output):
        self.inside -= 1
        means = [v.mean().abs().item() for v in floats(output)]
        self.seen["output_mean"] = max([self.seen["output_mean"]] + means)

    def loss_made(self, roots):
        self.leaves = leaves_below(roots)

    def gradients_made(self, roots):
        record = describe(roots[0].detach(), self.leaves)
        self.records.append({**record, **self.seen, "rate": self.rate, "line": self.run.line(),
                             "step": self.run.step})
        self.clear()

    def stepped(self, optimizer, args, kwargs):
        """Weights and rate after a step belong to the last record, as at the end of a batch."""
        rates = [float(group["lr"]) for group in optimizer.param_groups if "lr" in group]
        self.rate = max(rates, default=None)
        if self.records:
            values = [p for group in optimizer.param_groups for p in group["params"]]
            self.records[-1]["rate"] = self.rate
            self.records[-1]["bad_weight"] |= bool(kinds(values))
