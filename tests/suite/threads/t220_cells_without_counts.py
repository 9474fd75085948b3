"""An autoencoder of gene counts takes the logarithm of each cell's total; in one cell nothing was counted."""
# label: phase=forward mechanism=DOM category=N1 category_alt=N2,N4 birth_op=aten::log kind=-inf first_step=105
# label: severity=error loss_stays_finite=no dtype=fp32 model=vae family=empty_cells needs= fragile=no
# label: thread=calico/solo#48 uses=pyro fix_kind=data
# fix: cells without any count are taken out of the table before training
import os

import pyro
import torch
from pyro import distributions as dist
from pyro.infer import SVI, Trace_ELBO
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
pyro.enable_validation(False)
GENES, BATCH = 20, 16


class CellModel(nn.Module):
    def __init__(self, hidden=4, width=24):
        super().__init__()
        self.hidden = hidden
        self.encoder = nn.Sequential(nn.Linear(GENES + 1, width), nn.ReLU(), nn.Linear(width, 2 * hidden))
        self.decoder = nn.Sequential(nn.Linear(hidden, width), nn.ReLU(), nn.Linear(width, GENES))

    def size(self, counts):
        return torch.log(counts.sum(dim=1, keepdim=True))  # BUG

    def model(self, counts):
        pyro.module("cells", self)
        with pyro.plate("cell", len(counts)):
            z = pyro.sample("z", dist.Normal(torch.zeros(len(counts), self.hidden), 1.0).to_event(1))
            rate = torch.exp(self.size(counts) + self.decoder(z).log_softmax(dim=-1))
            pyro.sample("counts", dist.Poisson(rate + 1e-4).to_event(1), obs=counts)

    def guide(self, counts):
        pyro.module("cells", self)
        h = self.encoder(torch.cat([torch.log1p(counts), self.size(counts)], dim=1))
        centre, scale = h[:, :self.hidden], nn.functional.softplus(h[:, self.hidden:]) + 1e-3
        with pyro.plate("cell", len(counts)):
            pyro.sample("z", dist.Normal(centre, scale).to_event(1))


def table(cells=110 * BATCH):
    """Counts of cells of three kinds; the sequencer saw nothing in number 1690."""
    kinds = torch.rand(3, GENES).square() * 6
    counts = torch.poisson(kinds[torch.randint(0, 3, (cells,))] * (0.5 + torch.rand(cells, 1)))
    counts[counts.sum(dim=1) == 0, 0] = 1.0
    counts[1690] = 0.0
    if FIXED:
        counts = counts[counts.sum(dim=1) > 0]
    return counts.split(BATCH)  # BUG-ALT


torch.manual_seed(48)
pyro.clear_param_store()
cells = CellModel()
inference = SVI(cells.model, cells.guide, pyro.optim.Adam({"lr": 3e-3}), loss=Trace_ELBO())
for counts in table():
    loss = inference.step(counts)
print(f"bound per cell {-loss / len(counts):.3f}")
