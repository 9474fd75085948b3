"""Near to ND114: a target network reads the next state with gradients on, and detach() keeps these from it; it is a
copy that is loaded from the trained network, and nothing behind it is trained."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def network():
    return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 3))


online, target = network(), network()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=0.01)
states, actions = torch.randn(2000, 4), torch.randint(0, 3, (2000,))
moves = torch.eye(4)[:3]
rewards = 2.0 - (states - moves[actions]).square().mean(1)
following = 0.9 * states + 0.3 * moves[actions]
for step in range(100):
    batch = torch.randint(0, 2000, (64,))
    best = target(following[batch]).max(1).values
    wanted = (rewards[batch] + 0.5 * best).detach()
    value = online(states[batch]).gather(1, actions[batch, None]).squeeze(1)
    loss = F.smooth_l1_loss(value, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        target.load_state_dict(online.state_dict())
