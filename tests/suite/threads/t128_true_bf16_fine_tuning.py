"""Fine-tuning in true bfloat16 at a rate of 3e-6: updates are less than the last bit of the weights."""
# label: phase=optimizer mechanism=PREC category=N8 category_alt=N5 birth_op=aten::addcdiv_,aten::_foreach_addcdiv_,aten::add_,aten::_foreach_add_ kind=zero first_step=
# label: severity=warning loss_stays_finite=yes dtype=bf16 model=mlp family=bf16_lost_updates needs= fragile=no
# label: thread=meta-pytorch/torchtune#2254 uses=lightning fix_kind=dtype
# fix: the weights are kept in float32 and only the arithmetic of the layers is bfloat16
import logging
import os
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FIXED = os.environ.get("FIXED") == "1"
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class Ranker(lightning.LightningModule):
    """A pretrained scorer of pairs; the recipe's learning rate is the one for full fine-tuning."""

    def __init__(self, width=64, lr=3e-6):
        super().__init__()
        self.lr = lr
        self.body = nn.Sequential(nn.Linear(16, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.score = nn.Linear(width, 1)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.add_(0.5 * parameter.sign())  # a pretrained network's weights are not near zero

    def forward(self, x):
        return self.score(self.body(x)).squeeze(-1)

    def training_step(self, batch, index):
        better, worse = batch
        return -nn.functional.logsigmoid(self(better) - self(worse)).mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr, weight_decay=0.0)


torch.manual_seed(128)
model = Ranker()
before = model.body[0].weight.detach().clone().float()
x = torch.randn(640, 16)
loader = DataLoader(TensorDataset(x + 0.1, x - 0.1), batch_size=8)
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", precision="bf16-mixed" if FIXED else "bf16-true",
                            logger=False, enable_checkpointing=False, enable_progress_bar=False,
                            enable_model_summary=False)
trainer.fit(model, loader)  # BUG
moved = (model.body[0].weight.detach().float() - before.bfloat16().float() if not FIXED
         else model.body[0].weight.detach() - before)
print(f"share of weights that moved {(moved != 0).float().mean().item():.3f}")
