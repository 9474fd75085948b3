"""A labeller of animal behaviour starts with biases that are log odds; one behaviour occurs in no training clip."""
# label: phase=load mechanism=DOM category=N6 category_alt=N1,N2 birth_op=aten::log kind=-inf first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=bias_from_class_counts needs= fragile=no
# label: thread=jbohnslav/deepethogram#15 uses=timm fix_kind=init
# fix: the bias of a class without an example is set to zero, which is what it would be without the special start
import os

import timm
import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
BEHAVIOURS = ("walk", "rear", "groom", "dig", "freeze")


def clips(count=48, size=32):
    """Pictures with a brighter patch for each behaviour, and which ones occur; no animal ever froze."""
    occurs = (torch.rand(count, len(BEHAVIOURS)) < torch.tensor([0.5, 0.3, 0.2, 0.1, 0.0])).float()
    occurs[0, :4] = 1.0
    pictures = torch.randn(count, 3, size, size) * 0.3
    for k in range(len(BEHAVIOURS)):
        pictures[:, k % 3, 6 * k:6 * k + 6, 6 * k:6 * k + 6] += occurs[:, k, None, None] * 1.5
    return pictures, occurs


@torch.no_grad()
def start_at_base_rate(layer, occurs):
    """Lets the first predictions be the shares of the training set."""
    seen = occurs.sum(dim=0)
    bias = torch.log(seen / (len(occurs) - seen))  # BUG
    if FIXED:
        bias = torch.where(seen > 0, bias, 0.0)
    layer.bias.copy_(bias)


torch.manual_seed(15)
pictures, occurs = clips()
model = timm.create_model("test_resnet", pretrained=False, num_classes=len(BEHAVIOURS))
start_at_base_rate(model.get_classifier(), occurs)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(8):
    rows = torch.randperm(len(pictures))[:16]
    loss = nn.functional.binary_cross_entropy_with_logits(model(pictures[rows]), occurs[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
