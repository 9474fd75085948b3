"""Self-supervised training in half precision prints skipped steps at its start; the scale finds its level."""
# label: tempts=loss_scale max_severity=warning dtype=fp16 needs= family=loss_scale_search
# label: thread=facebookresearch/swav#47 uses=timm
# why: dynamic loss scaling begins with a scale that is too high, skips a few steps and goes on; the maintainers say
# why: so, and
# why: all parameters stay finite
import timm
import torch
from torch import nn


def views(size=16):
    images = torch.randn(size, 3, 16, 16)
    return images + 0.1 * torch.randn_like(images), images.flip(-1)


torch.manual_seed(47)
model = timm.create_model("vit_tiny_patch16_224", img_size=16, patch_size=8, embed_dim=24, depth=2, num_heads=2,
                          num_classes=16)
prototypes = nn.Linear(16, 8, bias=False)
parameters = [*model.parameters(), *prototypes.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.02, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**13)
skipped = 0
for step in range(24):
    first, second = views()
    with torch.autocast("cpu", dtype=torch.float16):
        scores = [prototypes(nn.functional.normalize(model(view), dim=-1)) for view in (first, second)]
    with torch.no_grad():
        codes = [(score.float() / 0.1).softmax(dim=0).softmax(dim=1) for score in scores]
    loss = -(codes[0] * (scores[1].float() / 0.1).log_softmax(dim=1)).sum(dim=1).mean()
    loss = loss - (codes[1] * (scores[0].float() / 0.1).log_softmax(dim=1)).sum(dim=1).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    skipped += scaler.get_scale() < before
print(f"swapped prediction {loss.item():.3f}, {skipped} steps skipped, scale {scaler.get_scale():.0f}")
