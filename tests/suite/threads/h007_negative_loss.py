"""Surface normals with predicted uncertainty: the training loss falls below zero and goes on falling."""
# label: tempts=negative_loss max_severity=none dtype=fp32 needs= family=density_above_one
# label: thread=baegwangbin/surface_normal_uncertainty#7 uses=lightning
# why: a density may be above one, so its negative logarithm may be negative; the author calls it natural
import logging
import warnings

import lightning
import torch
from torch import nn

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class NormalsWithConfidence(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 4, 1))

    def training_step(self, batch, _):
        images, normals = batch
        direction, raw = self.net(images).split((3, 1), dim=1)
        kappa = nn.functional.elu(raw) + 1.01
        direction = nn.functional.normalize(direction, dim=1)
        cosine = (direction * normals).sum(dim=1, keepdim=True).clamp(-1 + 1e-6, 1 - 1e-6)
        angle = torch.acos(cosine)
        loss = -torch.log1p(kappa.square()) + kappa * angle + torch.log1p(torch.exp(-kappa * torch.pi))
        self.last = loss.mean()
        return self.last

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


torch.manual_seed(7)
normals = nn.functional.normalize(torch.randn(64, 3, 1, 1), dim=1).expand(-1, -1, 8, 8)
images = normals + 0.02 * torch.randn(64, 3, 8, 8)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, normals), batch_size=16, shuffle=True)
model = NormalsWithConfidence()
trainer = lightning.Trainer(max_epochs=10, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, loader)
print(f"loss {model.last.item():.4f}")
