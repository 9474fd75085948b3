"""Pose regression under float16 autocast whose author took the loss scaler for optional: gradients become zero."""
# label: phase=backward mechanism=UDF category=N8 category_alt=N5 birth_op=aten::div,aten::_to_copy kind=zero first_step=0
# label: severity=warning loss_stays_finite=yes dtype=fp16 model=mlp family=autocast_without_scaler needs= fragile=no
# label: thread=engichang1467/Open-Rig3R#35 uses= fix_kind=scale
# fix: the loss goes through a gradient scaler before backward, and the step through it afterwards
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class PoseNet(nn.Module):
    """Pairs of patch descriptors to a rotation and a shift in metres."""

    def __init__(self, patches=32, width=64):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(24, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.pose = nn.Linear(width, 6)
        self.patches = patches

    def forward(self, descriptors):
        return self.pose(self.encode(descriptors))


def pairs(count=64, patches=32):
    descriptors = torch.randn(count, patches, 24)
    pose = descriptors[:, :, :6].mean(dim=1) * 1e-2
    return descriptors, pose


torch.manual_seed(129)
model = PoseNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", enabled=FIXED, init_scale=2.0**14)
for step in range(30):
    descriptors, pose = pairs()
    with torch.autocast("cpu", dtype=torch.float16):
        predicted = model(descriptors).mean(dim=1)  # BUG
    loss = 1e-4 * nn.functional.mse_loss(predicted.float(), pose)  # one of five terms of the loss
    optimizer.zero_grad()
    scaler.scale(loss).backward()  # BUG-ALT
    scaler.step(optimizer)
    scaler.update()
still = sum((p.grad == 0).float().mean().item() for p in model.parameters()) / len(list(model.parameters()))
print(f"pose loss {loss.item():.3e}, share of gradients that are zero {still:.2f}")
