"""Part segmentation: the overlap of a part that a shape neither has nor is said to have is 0/0."""
# label: tempts=zero-division max_severity=none dtype=fp32 needs= family=overlap_of_absent_parts
# label: thread=pyg-team/pytorch_geometric#1982 uses=torch_geometric
# why: the quotient is no number only where the part is absent from label and prediction alike; to call that a full
# why: overlap is right, says the maintainer, and no gradient goes through it
import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import global_max_pool
from torch_geometric.utils import scatter

PARTS = 4


def mean_overlap(predicted, label, batch, shapes):
    """Over all shapes and parts."""
    a, b = (nn.functional.one_hot(one, PARTS) for one in (predicted, label))
    both, either = (scatter(counts, batch, dim=0, dim_size=shapes) for counts in (a & b, a | b))
    overlap = both.float() / either.float()  # INTENDED
    overlap[overlap.isnan()] = 1.0
    return overlap.mean().item()


class Segmenter(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.out = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, PARTS))

    def forward(self, data):
        h = self.point(data.pos)
        return self.out(torch.cat([h, global_max_pool(h, data.batch)[data.batch]], dim=1))


def shape(points=30):
    """Parts are slices of a column, and a low column has fewer."""
    height = 1 + 3 * torch.rand(())
    position = torch.rand(points, 3) * torch.stack([torch.tensor(1.0), torch.tensor(1.0), height])
    return Data(pos=position, y=position[:, 2].long().clamp(max=PARTS - 1))


torch.manual_seed(1982)
model, overlaps = Segmenter(), []
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(40):
    data = Batch.from_data_list([shape() for _ in range(8)])
    logits = model(data)
    loss = nn.functional.cross_entropy(logits, data.y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    overlaps.append(mean_overlap(logits.argmax(dim=1), data.y, data.batch, 8))
print(f"loss {loss.item():.4f}, overlap {overlaps[-1]:.3f}")
