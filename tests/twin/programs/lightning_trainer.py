"""A run of the Lightning trainer: its loops, hooks, gradient clipping and validation."""
import logging
import warnings

import lightning
import torch
from state import show
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(lightning.LightningModule):
    """Two layers with dropout."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.1),
                                       torch.nn.Linear(16, 2))

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch, _):
        print("validation", torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1]).item())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


lightning.seed_everything(0, verbose=False)
data = TensorDataset(torch.randn(80, 8), torch.randint(0, 2, (80,)))
model = Classifier()
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=0.5)
trainer.fit(model, DataLoader(data, batch_size=4, shuffle=True), DataLoader(data, batch_size=40))
show(model)
