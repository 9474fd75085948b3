"""Mixed precision with a scaler: the first backward passes overflow, the steps are skipped, then the scale fits."""
# label: tempts=skipped-steps max_severity=none dtype=fp16 needs= family=amp_first_scales
# label: thread=Lightning-AI/pytorch-lightning#9799 uses=
# why: the scaler halves its scale until gradients fit in half, and leaves the weights alone while they do not; the
# why: maintainer's answer was that the code is fine
import torch
from torch import nn

torch.manual_seed(102)
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
scaler = torch.amp.GradScaler("cpu")
teacher = torch.randn(32, 8)
skipped, epoch_loss = 0, 0.0
for step in range(60):
    x = torch.randn(32, 32)
    with torch.autocast("cpu", dtype=torch.float16):
        output = model(x)
        loss = nn.functional.cross_entropy(output.float(), (x @ teacher).argmax(dim=1), reduction="sum")
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()  # INTENDED
    before = scaler.get_scale()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    skipped += scaler.get_scale() < before
    epoch_loss = 0.9 * epoch_loss + 0.1 * loss.item() / len(x)
print(f"loss {epoch_loss:.3f}, {skipped} steps skipped, scale 2^{torch.tensor(scaler.get_scale()).log2().item():.0f}")
