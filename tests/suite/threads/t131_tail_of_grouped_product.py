"""Experts of this rank get their rows in one grouped product; rows of other ranks' experts are left unwritten."""
# label: phase=forward mechanism=UNINIT category=N9 category_alt=N6,N2 birth_op=aten::empty,aten::new_empty,aten::fill_,external kind=nan first_step=24
# label: severity=error loss_stays_finite=no dtype=fp32 model=moe family=moe_grouped_product_tail needs= fragile=no
# label: thread=huggingface/transformers#48205 uses= fix_kind=mask
# fix: rows behind the last offset are set to zero after the product; the kernel is right not to write them
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
torch.use_deterministic_algorithms(True)  # fresh memory is filled with NaN, so the run repeats


class GroupedProduct(torch.autograd.Function):
    """out[start:end] = x[start:end] @ weight[group] for each group; rows behind the last end are not touched."""

    @staticmethod
    def forward(ctx, x, weight, ends):
        out = torch.empty(len(x), weight.shape[2])  # BUG
        start = 0
        for group, end in enumerate(ends):
            torch.mm(x[start:end], weight[group], out=out[start:end])
            start = end
        ctx.save_for_backward(x, weight)
        ctx.ends = ends
        return out

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        grad_x, grad_weight, start = torch.zeros_like(x), torch.zeros_like(weight), 0
        for group, end in enumerate(ctx.ends):
            grad_x[start:end] = grad[start:end] @ weight[group].t()
            grad_weight[group] = x[start:end].t() @ grad[start:end]
            start = end
        return grad_x, grad_weight, None


class LocalExperts(nn.Module):
    """Experts 0 to local - 1 live here; the router may choose any of `experts`."""

    def __init__(self, width=16, experts=4, local=4):
        super().__init__()
        self.local, self.router = local, nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 2 * width) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, 2 * width, width) / (2 * width)**0.5)

    def forward(self, x):
        gate, expert = self.router(x).softmax(dim=-1).max(dim=-1)
        order = expert.argsort(stable=True)
        ends = [int((expert <= group).sum()) for group in range(self.local)]
        hidden = GroupedProduct.apply(x[order], self.up, ends)
        out = GroupedProduct.apply(torch.relu(hidden), self.down, ends)  # BUG-ALT
        if FIXED:
            out = torch.cat([out[:ends[-1]], torch.zeros_like(out[ends[-1]:])])
        here = (expert[order] < self.local).float()[:, None]
        mixed = torch.zeros_like(x).index_copy(0, order, out * here * gate[order][:, None])
        return x + mixed


torch.manual_seed(131)
inp, layer, head = nn.Linear(6, 16), LocalExperts(), nn.Linear(16, 2)
optimizer = torch.optim.AdamW([*inp.parameters(), *layer.parameters(), *head.parameters()], lr=2e-3)
for step in range(32):
    if step == 24:
        layer.local = 3  # the run goes on with expert parallelism: one expert moves to another rank
    x = torch.randn(48, 6)
    loss = nn.functional.cross_entropy(head(layer(torch.tanh(inp(x)))), (x[:, 0] * x[:, 1] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    optimizer.step()
print(f"loss {loss.item():.4f}")
