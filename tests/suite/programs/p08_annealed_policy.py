"""A bandit policy is exp(q / T) / sum with T annealed every episode until exp overflows."""
# label: phase=forward mechanism=OVF category=N2 category_alt=N4,N5 birth_op=aten::exp,aten::exp_ kind=+inf first_step=3
# label: severity=error loss_stays_finite=no dtype=fp32 model=policy family=exp needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")
ARMS = 4
TEMPERATURES = [1.0, 0.3, 0.1, 0.01, 0.01]


def boltzmann(q, temperature):
    """Probability of every arm under the Boltzmann policy."""
    scaled = q / temperature
    weights = scaled.exp()  # BUG
    return weights / weights.sum(dim=-1, keepdim=True)


def build_q_network():
    net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, ARMS))
    with torch.no_grad():
        net[2].weight.mul_(0.1)
        net[2].bias.copy_(torch.tensor([2.0, 1.5, 1.0, 0.5]))
    return net.to(DEVICE)


torch.manual_seed(8)
q_network = build_q_network()
opt = torch.optim.Adam(q_network.parameters(), lr=1e-3)
contexts = torch.randn(len(TEMPERATURES), 16, 3).to(DEVICE)
payout = torch.tensor([1.0, 0.8, 0.2, 0.1]).to(DEVICE)

rewards = []
for context, temperature in zip(contexts, TEMPERATURES):
    probs = boltzmann(q_network(context), temperature)
    expected = (probs * payout).sum(dim=-1).mean()
    opt.zero_grad()
    (-expected).backward()
    opt.step()
    rewards.append(expected.detach())

print("expected reward per episode:", torch.stack(rewards).cpu().numpy().round(3))
