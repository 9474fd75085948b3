"""Molecules with many assays: a result that was never measured is stored as NaN, and left out before the loss."""
# label: tempts=nan-labels max_severity=none dtype=fp32 needs= family=multitask_missing_labels
# label: thread=datamol-io/graphium#391 uses=lightning
# why: NaN says that there is no label, nothing is computed from it, and a batch in which a task has no label gives that
# why: task no loss
import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")
TASKS = 5


class MultiAssay(lightning.LightningModule):
    def __init__(self, features=24, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleList(nn.Linear(width, 1) for _ in range(TASKS))
        self.history = []

    def training_step(self, batch, index):
        fingerprint, assays = batch
        h, losses = self.trunk(fingerprint), []
        for task, head in enumerate(self.heads):
            measured = ~assays[:, task].isnan()
            if measured.any():
                prediction = head(h[measured]).squeeze(1)
                losses.append(nn.functional.huber_loss(prediction, assays[measured, task]))
        loss = torch.stack(losses).mean()
        self.history.append(loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-3)


def measurements(molecules=320):
    fingerprint = (torch.rand(molecules, 24) < 0.3).float()
    assays = fingerprint @ torch.randn(24, TASKS) * 0.5
    share_measured = torch.tensor([0.9, 0.5, 0.3, 0.1, 0.02])
    assays[torch.rand(molecules, TASKS) > share_measured] = float("nan")  # INTENDED
    return TensorDataset(fingerprint, assays)


torch.manual_seed(109)
model = MultiAssay()
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, DataLoader(measurements(), batch_size=16))
print(f"mean loss {sum(model.history[-10:]) / 10:.4f}")
