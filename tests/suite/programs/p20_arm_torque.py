"""An arm controller turns torque into an angle with asin; a payload takes the ratio above 1."""
# label: phase=forward mechanism=DOM category=N2 category_alt=N1 birth_op=aten::asin kind=nan first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=domain needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
ARM_KG, ARM_M, GRAVITY = 2.0, 0.5, 9.81


def static_angle(torque, max_torque):
    """Angle at which gravity on the arm balances the torque."""
    return torch.asin(torque / max_torque)  # BUG


class TorqueNet(nn.Module):
    """Learns a small correction on top of the feed-forward torque of the payload."""

    def __init__(self):
        super().__init__()
        self.correct = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1), nn.Tanh())

    def forward(self, state, payload_kg):
        feed_forward = payload_kg * GRAVITY * ARM_M
        return feed_forward + 0.2 * self.correct(state).squeeze(-1)


def rollout(net, optimizer, payloads):
    max_torque = ARM_KG * GRAVITY * ARM_M
    errors = []
    for payload in payloads:
        state = torch.randn(20, 3).to(DEVICE)
        wanted = torch.linspace(0.1, 0.9, 20).to(DEVICE)
        angle = static_angle(net(state, payload), max_torque)
        error = torch.nn.functional.smooth_l1_loss(angle, wanted)
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        errors.append(error.item())
    return errors


torch.manual_seed(20)
net = TorqueNet().to(DEVICE)
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
errors = rollout(net, adam, payloads=[0.4, 0.8, 1.2, 2.6, 2.6])
print("angle errors:", " ".join("%.3f" % e for e in errors))
