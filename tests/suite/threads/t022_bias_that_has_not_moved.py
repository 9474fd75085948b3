"""An optimizer divides the way gone by the way walked; a zero bias has done neither at its first step."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt=N6,N2 birth_op=aten::div_,aten::div kind=nan
# label: first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=optimizer_denominator needs= fragile=no
# label: thread=kozistr/pytorch_optimizer#522 uses=lightning fix_kind=eps
# fix: eps is added to the sum of absolute movements before the division
import logging
import os
import warnings

import lightning
import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class SmoothRatio(torch.optim.Optimizer):
    """The rate's decay follows how straight a parameter has moved so far."""

    def __init__(self, params, lr=1e-3, betas=(0.5, 0.99), eps=1e-6):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure):
        with torch.enable_grad():
            loss = closure()
        for group in self.param_groups:
            fast, slow = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["before"], state["way"] = torch.zeros_like(p), torch.zeros_like(p)
                    state["walked"], state["square"] = torch.zeros_like(p), torch.zeros_like(p)
                moved = p - state["before"]
                state["way"].add_(moved)
                state["walked"].add_(moved.abs())
                total = state["walked"].sum()
                if FIXED:
                    total = total + group["eps"]
                ratio = state["way"].sum().abs_().div_(total)  # BUG
                mix = (ratio * (slow - fast) + (1 - slow)).square()
                state["square"].mul_(1 - mix).add_(p.grad.square() * mix)
                state["before"].copy_(p)
                p.sub_(group["lr"] * p.grad / (state["square"] + group["eps"]).sqrt())
        return loss


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
        nn.init.zeros_(self.net[2].bias)

    def training_step(self, batch, _):
        x, y = batch
        self.last = nn.functional.mse_loss(self.net(x), y)
        return self.last

    def configure_optimizers(self):
        return SmoothRatio(self.parameters(), lr=1e-2)


torch.manual_seed(522)
x = torch.randn(64, 6)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(dim=1, keepdim=True)), batch_size=16)
model = Regression()
trainer = lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, loader)
print(f"error {model.last.item():.4f}, bias {model.net[2].bias.item():.4f}")
