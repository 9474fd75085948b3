"""A physics-informed network for moisture: diffusivity is the predicted content to the power 1.2, also below 0."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N2,N7 birth_op=aten::pow kind=nan first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=pinn family=power_of_negative needs= fragile=no
# label: thread=prateekbhustali/Physics-Informed-Neural-Networks#1 uses=lightning fix_kind=clamp
# fix: the answer is that the predicted content may be negative and must be kept from it before the power is taken in
# fix: the
# fix: residual; the network itself stays as it is
import logging
import os
import warnings

import lightning
import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class Content(lightning.LightningModule):
    """Moisture as a function of place and time."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))

    def forward(self, point):
        return self.net(point)

    def training_step(self, batch, _):
        self.last = residual(self, batch[0]).square().mean() + initial(self)
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(self.last)
        optimizer.step()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def slope(value, point):
    return torch.autograd.grad(value, point, torch.ones_like(value), create_graph=True)[0]


def residual(model, point):
    """u_t - (D(u) u_x)_x with D = 0.1 u^1.2"""
    point = point.requires_grad_()
    content = model(point)
    u_x, u_t = slope(content, point).split(1, dim=1)
    wet = content.clamp_min(1e-6) if FIXED else content
    diffusivity = 0.1 * wet**1.2  # BUG
    flux_x = slope(diffusivity * u_x, point)[:, :1]
    return u_t - flux_x


def initial(model, count=32):
    x = torch.rand(count, 1)
    return (model(torch.cat([x, torch.zeros_like(x)], dim=1)) - torch.sin(torch.pi * x)).square().mean()


torch.manual_seed(12)
model = Content()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(256, 2)), batch_size=64)
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, loader)
print(f"residual and start {model.last.item():.5f}")
