"""Layer-wise trust ratios where some layers start at zero: w / u is infinite or 0 / 0 there, and where() drops it."""
# label: tempts=dropped_ratio max_severity=none dtype=fp32 needs= family=trust_ratio
# label: thread=mosaicml/composer#967 uses=timm
# why: the ratio of a zero weight or update is replaced by one before it meets the update; nothing differentiates it
import timm
import torch
from torch import nn


class LayerwiseAdam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), eps=1e-6):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state.setdefault(p, {})
                if not state:
                    state["first"], state["second"] = torch.zeros_like(p), torch.zeros_like(p)
                state["first"].lerp_(p.grad, 1 - beta1)
                state["second"].lerp_(p.grad.square(), 1 - beta2)
                update = state["first"] / (state["second"].sqrt() + group["eps"])
                weight, length = torch.linalg.vector_norm(p), torch.linalg.vector_norm(update)
                one = torch.ones_like(weight)
                ratio = torch.where(weight > 0, torch.where(length > 0, weight / length, one), one)  # INTENDED
                p.add_(ratio * update, alpha=-group["lr"])


torch.manual_seed(967)
model = timm.create_model("mixer_s32_224", img_size=32, patch_size=8, num_classes=4, embed_dim=24, num_blocks=2)
nn.init.zeros_(model.head.weight)  # the head starts as no opinion at all
nn.init.zeros_(model.head.bias)
optimizer = LayerwiseAdam(model.parameters(), lr=1e-2)
kinds = torch.randn(4, 3, 32, 32)
for step in range(24):
    label = torch.randint(0, 4, (8,))
    loss = nn.functional.cross_entropy(model(kinds[label] + 0.2 * torch.randn(8, 3, 32, 32)), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}, head {model.head.weight.norm().item():.3f}")
