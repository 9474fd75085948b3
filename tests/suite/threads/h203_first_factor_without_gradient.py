"""Adapters of low rank: one factor starts at zero, so the other has no gradient in the first step."""
# label: tempts=zero-gradient max_severity=none dtype=fp32 needs= family=adapter_starts_at_zero
# label: thread=Lightning-AI/litgpt#1229 uses=peft
# why: only one of the two matrices is zero, and it gets a gradient at once; from the second step on both do, so that
# why: training starts from the untouched model
import torch
from peft import LoraConfig, get_peft_model
from torch import nn


class Classifier(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.first, self.second, self.out = nn.Linear(12, width), nn.Linear(width, width), nn.Linear(width, 4)

    def forward(self, x):
        return self.out(torch.relu(self.second(torch.relu(self.first(x)))))


def sizes(model, factor):
    return sum(p.grad.abs().sum().item() for name, p in model.named_parameters() if factor in name)


torch.manual_seed(1229)
model = get_peft_model(Classifier(), LoraConfig(r=4, lora_alpha=8, target_modules=["first", "second"]))
teacher, gradients = torch.randn(12, 4), []
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3)
for step in range(40):
    x = torch.randn(64, 12)
    loss = nn.functional.cross_entropy(model(x), (x @ teacher).argmax(dim=1))
    optimizer.zero_grad()
    loss.backward()
    gradients.append((sizes(model, "lora_A"), sizes(model, "lora_B")))
    optimizer.step()
first, last = gradients[0], gradients[-1]
print(f"loss {loss.item():.4f}, gradients {first[0]:.1f} and {first[1]:.1f}, at last {last[0]:.1f} and {last[1]:.1f}")
