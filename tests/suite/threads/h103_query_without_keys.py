"""Scaled dot-product attention over clips of any length: a clip without frames attends to nothing and gets zeros."""
# label: tempts=empty-row max_severity=none dtype=fp32 needs= family=attention_no_keys
# label: thread=pytorch/pytorch#131060 uses=
# why: since that change the attention of a row that may see nothing is zero, in value and in gradient
import torch
import torch.nn.functional as F
from torch import nn


class FramePooling(nn.Module):
    """One learned query per head asks all frames of a clip."""

    def __init__(self, width=24, heads=4):
        super().__init__()
        self.heads = heads
        self.query = nn.Parameter(torch.randn(heads, 1, width // heads))
        self.key_value, self.out = nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, frames, present):
        key, value = self.key_value(frames).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query = self.query.expand(len(frames), -1, -1, -1)
        pooled = F.scaled_dot_product_attention(query, key, value, attn_mask=present[:, None, None])
        return self.out(pooled.flatten(1))


class ClipClassifier(nn.Module):
    def __init__(self, features=10, width=24, classes=4):
        super().__init__()
        self.inp, self.pool, self.head = nn.Linear(features, width), FramePooling(width), nn.Linear(width, classes)

    def forward(self, frames, present):
        return self.head(torch.relu(self.pool(torch.tanh(self.inp(frames)), present)))


def clips(count=24, longest=9):
    label = torch.randint(0, 4, (count,))
    length = torch.randint(0, longest, (count, 1))  # the detector found no face in some
    present = torch.arange(longest) < length
    frames = F.one_hot(label, 10)[:, None] + 0.5 * torch.randn(count, longest, 10)
    return frames * present[..., None], present, label


torch.manual_seed(103)
model = ClipClassifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(50):
    frames, present, label = clips()
    loss = F.cross_entropy(model(frames, present), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"clip loss {loss.item():.3f}")
