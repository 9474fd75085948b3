"""A registration starts with offsets of zero and penalises their norms, whose slope at zero divides by zero inside."""
# label: tempts=norm_at_zero max_severity=none dtype=fp32 needs= family=norm_slope_at_zero
# label: thread=pytorch/pytorch#2421 uses=
# why: the norm's slope at zero is defined as zero; the library divides and masks the result before anything sees it
import torch
from torch import nn


class Registration(nn.Module):
    """A displacement for each landmark, smooth where the data say nothing."""

    def __init__(self, landmarks):
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(landmarks, 3))

    def forward(self, points):
        return points + self.offset

    def roughness(self):
        neighbours = self.offset[1:] - self.offset[:-1]
        return self.offset.norm(dim=-1).mean() + torch.linalg.vector_norm(neighbours, dim=-1).mean()


torch.manual_seed(2421)
fixed = torch.rand(60, 3)
moving = fixed + torch.tensor([0.2, 0.0, -0.1]) * (fixed[:, :1] > 0.5)
model = Registration(60)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(40):
    loss = (model(moving) - fixed).square().sum(dim=-1).mean() + 0.05 * model.roughness()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"distance {loss.item():.4f}, largest offset {model.offset.norm(dim=-1).max().item():.3f}")
