"""Forecasts of daily sales, each series divided by its running level; an article is listed before it is first sold."""
# label: phase=forward mechanism=DIV0 category=N1 category_alt=N2,N4 birth_op=aten::div kind=nan first_step=128
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=series_starts_at_zero needs= fragile=no
# label: thread=kdgutier/esrnn_torch#5 uses=lightning fix_kind=data
# fix: a constant is added to the whole target of every series before training (and taken away from the forecasts)
import logging
import os
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
FIXED = os.environ.get("FIXED") == "1"
DAYS, AHEAD = 20, 4


class SmoothedForecaster(lightning.LightningModule):
    """Exponential smoothing gives the level, a small network forecasts the ratio to it."""

    def __init__(self, width=24):
        super().__init__()
        self.automatic_optimization = False
        self.smoothing = nn.Parameter(torch.tensor(-1.0))
        self.net = nn.Sequential(nn.Linear(DAYS, width), nn.Tanh(), nn.Linear(width, AHEAD))
        self.history = []

    def levels(self, sales):
        rate, level, levels = torch.sigmoid(self.smoothing), sales[:, 0], [sales[:, 0]]
        for day in range(1, DAYS):
            level = rate * sales[:, day] + (1 - rate) * level
            levels.append(level)
        return torch.stack(levels, dim=1)

    def training_step(self, batch, index):
        sales, = batch
        past, future = sales[:, :DAYS], sales[:, DAYS:]
        levels = self.levels(past)
        ratios = past / levels  # BUG
        forecast = self.net(ratios) * levels[:, -1:]
        loss = nn.functional.l1_loss(forecast, future) / future.mean()
        self.history.append(loss.item())
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


def catalogue(articles=1088):
    """Sales of a week's rhythm; in the order of the articles' numbers, and the newest comes last."""
    day = torch.arange(DAYS + AHEAD)
    sales = torch.poisson((8 + 12 * torch.rand(articles, 1)) * (1.2 + torch.sin(day * 6.28 / 7))) + 1
    sales[1027, :3] = 0.0
    if FIXED:
        sales = sales + 1.0
    return TensorDataset(sales)  # BUG-ALT


torch.manual_seed(5)
model = SmoothedForecaster()
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, DataLoader(catalogue(), batch_size=8))
print(f"mean error {sum(model.history[-8:]) / 8:.4f}")
