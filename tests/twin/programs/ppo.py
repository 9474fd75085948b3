"""PPO on a cart that must stay in the middle: actions masked with -inf, GAE, clipped ratios."""
import random

import torch
from state import show
from torch import nn


class Cart:
    """Position and speed on a line; push left, rest or push right, at the walls not outwards."""

    def reset(self):
        self.position, self.speed, self.time = random.uniform(-0.5, 0.5), 0.0, 0
        return self.look()

    def look(self):
        return [self.position, self.speed], [self.position > -0.9, True, self.position < 0.9]

    def step(self, action):
        self.speed = 0.9 * self.speed + 0.1 * (action - 1) + random.gauss(0.0, 0.02)
        self.position += self.speed
        self.time += 1
        ended = abs(self.position) > 1.0
        return self.look(), -1.0 if ended else 1.0 - abs(self.position), ended or self.time >= 20


class Agent(nn.Module):
    """One body, a policy head over the legal actions and a value head."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.policy = nn.Linear(32, 3)
        self.value = nn.Linear(32, 1)

    def forward(self, states, legal):
        hidden = self.body(states)
        logits = self.policy(hidden).masked_fill(~legal, float("-inf"))
        return logits.log_softmax(-1), self.value(hidden).squeeze(-1)


def play(agent, cart, length):
    """One roll-out: states, masks, actions, their log probabilities, rewards, ends and values."""
    rows, look = [], cart.reset()
    with torch.no_grad():
        for _ in range(length):
            state, legal = torch.tensor(look[0]), torch.tensor(look[1])
            logs, value = agent(state, legal)
            action = torch.distributions.Categorical(logits=logs).sample()
            look, reward, ended = cart.step(action.item())
            outcome = torch.tensor(reward), torch.tensor(float(ended))
            rows.append((state, legal, action, logs[action], *outcome, value))
            if ended:
                look = cart.reset()
        last = agent(torch.tensor(look[0]), torch.tensor(look[1]))[1]
    return [torch.stack(column) for column in zip(*rows)], last


def advantages_of(rewards, ends, values, last, discount=0.99, trace=0.95):
    """Generalised advantage estimates, from the end to the start."""
    found, running, after = torch.zeros_like(rewards), 0.0, last
    for time in reversed(range(len(rewards))):
        going = 1.0 - ends[time]
        delta = rewards[time] + discount * after * going - values[time]
        running = delta + discount * trace * going * running
        found[time], after = running, values[time]
    return found


torch.manual_seed(0)
random.seed(0)
agent, cart = Agent(), Cart()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3, eps=1e-5)
for step in range(50):
    if step % 5 == 0:
        (states, legal, actions, old, rewards, ends, values), last = play(agent, cart, 48)
        advantages = advantages_of(rewards, ends, values, last)
        returns = advantages + values
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        print(step, rewards.mean().item())
    rows = torch.randperm(48)[:24]
    logs, value = agent(states[rows], legal[rows])
    ratio = (logs.gather(1, actions[rows, None]).squeeze(1) - old[rows]).exp()
    gain = torch.minimum(ratio * advantages[rows], ratio.clamp(0.8, 1.2) * advantages[rows])
    safe = logs.masked_fill(~legal[rows], 0.0)
    entropy = -(safe * logs.exp()).sum(1)
    loss = -gain.mean() + 0.5 * nn.functional.mse_loss(value, returns[rows]) - 0.01 * entropy.mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()
show(agent, advantages)
