"""Street scenes with batches of one: a frame without a single annotated pixel, and a mean over the annotated ones."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N1 birth_op=aten::nll_loss2d_forward,aten::nll_loss_forward,aten::div kind=nan first_step=27
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=segmentation_all_ignored needs= fragile=no
# label: thread=ultralytics/ultralytics#25097 uses=timm fix_kind=guard
# fix: the loss is zero, and still connected to the prediction, where the batch has no pixel to count
import os

import timm
import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
VOID = 255


class SemanticLoss(nn.Module):
    def __init__(self, auxiliary=0.4):
        super().__init__()
        self.auxiliary = auxiliary

    def cross_entropy(self, logits, mask):
        if FIXED and not (mask != VOID).any():
            return logits.sum() * 0
        return nn.functional.cross_entropy(logits, mask, ignore_index=VOID)  # BUG

    def forward(self, outputs, mask):
        main, extra = (nn.functional.interpolate(o, mask.shape[-2:], mode="bilinear") for o in outputs)
        return self.cross_entropy(main, mask) + self.auxiliary * self.cross_entropy(extra, mask)


class Segmenter(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.backbone = timm.create_model("test_resnet", pretrained=False, features_only=True, out_indices=(1, 3))
        shallow, deep = self.backbone.feature_info.channels()
        self.extra, self.main = nn.Conv2d(shallow, classes, 1), nn.Conv2d(deep, classes, 1)

    def forward(self, image):
        shallow, deep = self.backbone(image)
        return self.main(deep), self.extra(shallow)


def frame(number, size=64):
    """Vertical stripes of classes, a hood of void at the bottom; frame 27 is from before the annotators started."""
    mask = (torch.arange(size) * 5 // size).repeat(size, 1)[None].roll(number, dims=2)
    image = torch.randn(1, 3, size, size) * 0.2 + mask[:, None] / 5
    mask[:, -6:] = VOID
    if number == 27:
        mask[:] = VOID
    return image, mask


torch.manual_seed(113)
running = 0.0
model, criterion = Segmenter(), SemanticLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for number in range(34):
    image, mask = frame(number)
    loss = criterion(model(image), mask)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running += loss.item()
print(f"mean semantic loss {running / 34:.4f}")
