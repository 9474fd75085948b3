"""A pose network fed with joint angles; two joints at the same point make a bone of length zero."""
# label: phase=forward mechanism=DIV0 category=N1 category_alt=N2,N7 birth_op=aten::div kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=div0 needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
# (joint, parent, grandparent): the angle is between the two bones that meet at the parent
TRIPLES = torch.tensor([[2, 1, 0], [3, 2, 1], [5, 4, 0], [6, 5, 4]])


class BoneCosines(nn.Module):
    """Cosine of the angle between neighbouring bones, from 2-d key points."""

    def forward(self, points):
        joint, parent, grand = (points[:, TRIPLES[:, k]] for k in range(3))
        lower, upper = joint - parent, parent - grand
        dot = (lower * upper).sum(dim=-1)
        return dot / (lower.norm(dim=-1) * upper.norm(dim=-1))  # BUG


class GestureNet(nn.Module):
    def __init__(self, gestures=3):
        super().__init__()
        self.angles = BoneCosines()
        self.rnn = nn.GRU(len(TRIPLES), 12, batch_first=True)
        self.head = nn.Linear(12, gestures)

    def forward(self, clips):
        batch, frames = clips.shape[:2]
        cosines = self.angles(clips.flatten(0, 1)).view(batch, frames, -1)
        _, last = self.rnn(cosines)
        return self.head(last[-1])


def clip_batch(step):
    clips = torch.rand(4, 5, 7, 2) + torch.arange(7).view(1, 1, 7, 1)
    if step == 2:
        clips[0, 3, 5:] = 0.0  # the tracker lost the hand and wrote (0, 0) for both joints
    return clips, torch.randint(0, 3, (4,))


torch.manual_seed(18)
model = GestureNet().to(DEVICE)
opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for step in range(4):
    clips, gesture = clip_batch(step)
    loss = criterion(model(clips.to(DEVICE)), gesture.to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
print("gesture loss %.4f" % loss.item())
