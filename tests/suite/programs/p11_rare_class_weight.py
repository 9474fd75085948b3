"""Cross-entropy with class weights where the background weighs 0; one tile is background only."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N1,N5 birth_op=aten::nll_loss2d_forward,aten::nll_loss_forward,aten::div kind=nan first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=conv family=div0 needs= fragile=no
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = os.environ.get("DEVICE", "cpu")
BACKGROUND, ROAD, HOUSE = range(3)


class TileSegmenter(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.encode = nn.Conv2d(3, 8, kernel_size=3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.classify = nn.Conv2d(8, classes, kernel_size=1)

    def forward(self, tile):
        return self.classify(F.relu(self.norm(self.encode(tile))))


def tiles(count):
    """Aerial tiles with a road and a house; the fourth shows only the sea."""
    for i in range(count):
        image = torch.rand(2, 3, 12, 12)
        mask = torch.full((2, 12, 12), BACKGROUND)
        if i != 3:
            mask[:, 5:7, :] = ROAD
            mask[:, :3, :3] = HOUSE
        yield image.to(DEVICE), mask.to(DEVICE)


torch.manual_seed(11)
model = TileSegmenter().to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
class_weight = torch.tensor([0.0, 1.0, 2.0]).to(DEVICE)

total = 0.0
for image, mask in tiles(6):
    opt.zero_grad()
    loss = F.cross_entropy(model(image), mask, weight=class_weight)  # BUG
    loss.backward()
    opt.step()
    total += loss.item()

print("mean loss over the epoch %.4f" % (total / 6))
