"""Off-policy actor-critic (V-trace): the importance weight overflows and is capped at one."""
# label: tempts=overflow max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
TIME, BATCH, GAMMA = 6, 4, 0.95


@torch.no_grad()
def vtrace(log_ratio, reward, value, last_value, cap=1.0):
    rho = log_ratio.exp().clamp(max=cap)
    following = torch.cat([value[1:], last_value[None]])
    delta = rho * (reward + GAMMA * following - value)
    correction, corrections = torch.zeros_like(last_value), []
    for t in reversed(range(TIME)):
        correction = delta[t] + GAMMA * rho[t] * correction
        corrections.insert(0, correction)
    target = value + torch.stack(corrections)
    following = torch.cat([target[1:], last_value[None]])
    return target, rho * (reward + GAMMA * following - value)


torch.manual_seed(31)
actor, critic = nn.Linear(5, 3).to(DEVICE), nn.Linear(5, 1).to(DEVICE)
opt = torch.optim.RMSprop([*actor.parameters(), *critic.parameters()], lr=1e-3)
for step in range(5):
    observation = torch.randn(TIME + 1, BATCH, 5).to(DEVICE)
    action = torch.randint(3, (TIME, BATCH)).to(DEVICE)
    reward = torch.rand(TIME, BATCH).to(DEVICE)
    behaviour = torch.full((TIME, BATCH), -1.1)
    behaviour[2, step % BATCH] = -150.0  # the behaviour policy all but never does this
    value = critic(observation)[..., 0]
    log_prob = torch.log_softmax(actor(observation[:-1]), dim=-1)
    log_prob = log_prob.gather(-1, action[..., None])[..., 0]
    log_ratio = log_prob.detach() - behaviour.to(DEVICE)
    target, advantage = vtrace(log_ratio, reward, value[:-1], value[-1])
    loss = -(advantage * log_prob).mean() + 0.5 * (target - value[:-1]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"v-trace: loss {loss.item():.3f}")
