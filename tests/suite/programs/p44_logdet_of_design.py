"""A D-optimal design maximises a log-determinant by QR; the log is guarded, QR is not."""
# label: phase=backward mechanism=SING category=N3 category_alt=N7,N1 birth_op=aten::linalg_solve_triangular kind=nan,+inf,-inf first_step=2
# label: severity=error loss_stays_finite=yes dtype=fp32 model=linear family=slope needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def guarded_logdet(design):
    """log det(X'X) from the diagonal of R, kept finite for a singular design."""
    r = torch.linalg.qr(design).R  # BUG
    return 2.0 * torch.log(r.diagonal().abs() + 1e-3).sum()


class SensorGains(nn.Module):
    """One learned gain per sensor, saturating."""

    def __init__(self, sensors):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(sensors))

    def forward(self, readings):
        return torch.tanh(readings * self.gain)


def campaign(steps, sensors):
    """Readings of the sensors; in the third campaign one of them is offline and reads 0."""
    for step in range(steps):
        readings = torch.randn(12, sensors)
        if step == 2:
            readings[:, 1] = 0.0
        yield readings


torch.manual_seed(44)
model = SensorGains(sensors=4).to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
for readings in campaign(steps=3, sensors=4):
    information = guarded_logdet(model(readings.to(DEVICE)))
    loss = 0.1 * model.gain.square().sum() - information
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"design: last loss {loss.item():.4f}")
