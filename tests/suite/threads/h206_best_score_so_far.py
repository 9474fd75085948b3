"""A trainer stops early and keeps the best model; before the first validation the best score is infinity."""
# label: tempts=sentinel max_severity=none dtype=fp32 needs= family=best_score_of_none
# label: thread=sattree/gap#17 uses=lightning
# why: infinity is the start value of a minimum, which every score is below; nothing but comparisons sees it
import logging
import warnings

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class Regressor(lightning.LightningModule):
    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 1))

    def error(self, batch):
        x, y = batch
        return nn.functional.mse_loss(self.layers(x).squeeze(1), y)

    def training_step(self, batch, index):
        return self.error(batch)

    def validation_step(self, batch, index):
        self.log("error", self.error(batch))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=5e-3)


def measurements(count):
    x = torch.randn(count, 6)
    return DataLoader(TensorDataset(x, x[:, 0] * x[:, 1] + x[:, 2]), batch_size=32)


torch.manual_seed(17)
patience = EarlyStopping(monitor="error", patience=2)  # INTENDED
trainer = lightning.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False, callbacks=[patience])
trainer.fit(Regressor(), measurements(256), measurements(64))
print(f"best error {patience.best_score.item():.4f}")
