"""A policy with Beta actions drops its concentrations below one; a sample is exactly 1 and its density infinite."""
# label: phase=forward mechanism=DOM category=N2 category_alt=N4,N7 birth_op=aten::xlogy kind=+inf,-inf first_step=
# label: severity=error loss_stays_finite=no dtype=fp32 model=policy family=beta_edges needs= fragile=no
# label: thread=HorizonRobotics/alf#957 uses= fix_kind=clamp
# fix: the reparametrised sample is clamped to eps .. 1 - eps before anything is computed from it
import os

import torch
from torch import nn
from torch.distributions import Beta

FIXED = os.environ.get("FIXED") == "1"


class BetaPolicy(nn.Module):
    def __init__(self, observations):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(observations, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, observation, sharpness):
        alpha, beta = (nn.functional.softplus(self.net(observation) - sharpness) + 0.01).unbind(dim=-1)
        return Beta(alpha, beta)


def act(policy):
    action = policy.rsample()
    if FIXED:
        eps = torch.finfo(action.dtype).eps
        action = action.clamp(eps, 1 - eps)
    return action, policy.log_prob(action)  # BUG


torch.manual_seed(95)
net = BetaPolicy(4)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-2)
for step in range(60):
    observation = torch.rand(128, 4)
    action, log_prob = act(net(observation, sharpness=0.15 * step))  # valves end up open or shut
    valve = (observation[:, 0] > 0.5).float()  # fully open or fully shut is best
    reward = 1 - 4 * (action - valve).square()
    loss = -(reward - 0.02 * log_prob).mean()
    if not loss.isfinite():
        print("entropy bonus is gone at some step")
        loss.backward()
        optimizer.step()
        break
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
print(f"reward {reward.mean().item():.3f}")
