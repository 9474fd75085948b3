"""PPO cuts every rollout into minibatches of 16; episodes of varying length leave a last one of a single step."""
# label: phase=forward mechanism=DIV0 category=N4 category_alt=N1,N2,N7 birth_op=aten::std kind=nan first_step=36
# label: severity=error loss_stays_finite=no dtype=fp32 model=policy family=advantage_of_one needs= fragile=no
# label: thread=DLR-RM/stable-baselines3#1028 uses= fix_kind=guard
# fix: advantages are normalised only where the minibatch has more than one of them; the batch is legal, so the loss
# fix: is at fault
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
MINIBATCH, CLIP = 16, 0.2


class ActorCritic(nn.Module):
    def __init__(self, observations, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observations, 32), nn.Tanh())
        self.actor, self.critic = nn.Linear(32, actions), nn.Linear(32, 1)

    def forward(self, observation):
        hidden = self.body(observation)
        return torch.distributions.Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(-1)


def collect(agent, length):
    """One rollout: observations, actions, their log probabilities, returns."""
    observations = torch.randn(length, 6)
    with torch.no_grad():
        policy, _ = agent(observations)
        actions = policy.sample()
        rewards = (actions == (observations[:, 0] > 0).long()).float()
        returns, running = torch.zeros(length), torch.zeros(())
        for index in reversed(range(length)):
            running = rewards[index] + 0.95 * running
            returns[index] = running
        return observations, actions, policy.log_prob(actions), returns


def surrogate(agent, observations, actions, old_log_prob, returns):
    policy, values = agent(observations)
    advantages = returns - values.detach()
    if not FIXED or len(advantages) > 1:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)  # BUG
    ratio = torch.exp(policy.log_prob(actions) - old_log_prob)
    clipped = torch.min(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages)
    return -clipped.mean() + 0.5 * (returns - values).square().mean() - 0.01 * policy.entropy().mean()


torch.manual_seed(0)
agent = ActorCritic(6, 2)
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)
for length in (64, 60, 64, 62, 64, 58, 56, 64, 65):
    if not all(p.isfinite().all() for p in agent.parameters()):
        break
    rollout = collect(agent, length)
    for picked in torch.randperm(length).split(MINIBATCH):
        loss = surrogate(agent, *(part[picked] for part in rollout))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
print(f"last surrogate {loss.item():.4f}")
