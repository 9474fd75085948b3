"""A hand-written optimizer adds eps after the reciprocal root; words of a new vocabulary slice have no gradient yet."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt=N2 birth_op=aten::rsqrt,aten::rsqrt_ kind=+inf
# label: first_step=24
# label: severity=error loss_stays_finite=yes dtype=fp32 model=embedding family=optimizer_denominator needs= fragile=no
# label: thread=kozistr/pytorch_optimizer#481 uses= fix_kind=eps
# fix: eps is added before rsqrt() and no longer after it; a setting of the optimizer is at fault by the suite's usage
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class ProjectedAdam(torch.optim.Optimizer):
    """Adam whose decay leaves out weights that a normalisation makes free of scale."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["age"], state["first"], state["second"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                state["age"] += 1
                state["first"].lerp_(p.grad, 1 - beta1)
                state["second"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                unbiased = state["second"] / (1 - beta2 ** state["age"])
                if FIXED:
                    inverse = unbiased.add(group["eps"] ** 2).rsqrt()
                else:
                    inverse = unbiased.rsqrt().add(group["eps"])  # BUG
                p.add_(state["first"] * inverse, alpha=-group["lr"] / (1 - beta1 ** state["age"]))


class Tagger(nn.Module):
    def __init__(self, words, tags, width=16):
        super().__init__()
        self.words, self.more = nn.Embedding(words, width), nn.Embedding(8, width)
        self.scorer = nn.Sequential(nn.Linear(width, 24), nn.Tanh(), nn.Linear(24, tags))

    def forward(self, tokens):
        table = torch.cat([self.words.weight, self.more.weight])
        return self.scorer(table[tokens])


torch.manual_seed(480)
tagger = Tagger(40, 5)
optimizer = ProjectedAdam([tagger.words.weight, *tagger.scorer.parameters()], lr=2e-3)
for step in range(26):
    tokens = torch.arange(40).repeat(2)
    if step == 24:  # the second domain brings eight words, of which this batch has two
        optimizer.add_param_group({"params": [tagger.more.weight]})
    if step >= 24:
        tokens = torch.cat([tokens, torch.tensor([41, 44])])
    loss = nn.functional.cross_entropy(tagger(tokens), tokens % 5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not tagger.more.weight.isfinite().all():
        break
print(f"tagging loss {loss.item():.4f}, new words {tagger.more.weight.norm().item():.3f}")
