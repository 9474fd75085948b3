"""A weather model's dataset standardises fields with numpy; in a period without rain the deviation of rain is 0."""
# label: phase=data mechanism=DIV0 category=N2 category_alt=N1 birth_op=external kind=nan first_step=24
# label: severity=error loss_stays_finite=no dtype=fp32 model=gnn family=lightning_field_standardisation needs= fragile=no
# label: thread=mllam/neural-lam#189 uses=lightning fix_kind=where
# fix: where a field's deviation is zero the standardised field is zero; weather without rain is legal, so the formula
# fix: is to blame (N2), which is the dataset's own (N1)
import logging
import os
import warnings

import lightning
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FIXED = os.environ.get("FIXED") == "1"
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class ForecastWindows(Dataset):
    """(state now, next) of 16 grid points with wind, temperature and rain; months have statistics of their own."""

    def __init__(self, months=6, hours=33, points=16):
        rng = np.random.default_rng(108)
        self.fields, self.stats = [], []
        for month in range(months):
            field = rng.normal(size=(hours, points, 3)).astype(np.float32).cumsum(axis=0) * 0.1
            field[..., 2] = np.maximum(field[..., 2], 0) * (month != 3)
            self.fields.append(field)
            self.stats.append((field.mean(axis=(0, 1)), field.std(axis=(0, 1))))
        self.hours = hours - 1

    def __len__(self):
        return len(self.fields) * self.hours

    def __getitem__(self, index):
        month, hour = divmod(index, self.hours)
        mean, std = self.stats[month]
        window = self.fields[month][hour:hour + 2] - mean
        if FIXED:
            window = np.where(std > 0, window / np.where(std > 0, std, 1), 0).astype(np.float32)
        else:
            window = window / std  # BUG-ALT
        return torch.from_numpy(window)  # BUG


class GridForecaster(lightning.LightningModule):
    def __init__(self, width=32):
        super().__init__()
        self.encode = nn.Linear(9, width)
        self.decode = nn.Sequential(nn.SiLU(), nn.Linear(width, 3))

    def forward(self, state):
        around = torch.cat([state.roll(1, dims=1), state, state.roll(-1, dims=1)], dim=-1)
        return state + self.decode(self.encode(around))

    def training_step(self, batch, index):
        return nn.functional.mse_loss(self(batch[:, 0]), batch[:, 1])

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


torch.manual_seed(108)
model = GridForecaster()
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, DataLoader(ForecastWindows(), batch_size=4))
print(f"encoder norm {model.encode.weight.norm().item():.3f}")
