"""A recurrent network over long sequences, truncated back-propagation with a state that is carried on.

The bug: one late sequence has a length of zero, by which its sum is divided.
"""
import sys

import torch
from torch import nn

STEPS = int(sys.argv[1])
BUG_STEP = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS


def main():
    torch.manual_seed(13)
    torch.set_num_threads(1)
    lstm = nn.LSTM(4, 24, num_layers=2, batch_first=True)
    head = nn.Linear(24, 4)
    parameters = [*lstm.parameters(), *head.parameters()]
    optimizer = torch.optim.RMSprop(parameters, lr=1e-3)
    state = (torch.zeros(2, 8, 24), torch.zeros(2, 8, 24))
    phase = torch.rand(8, 1, 1) * 6
    for step in range(STEPS):
        time = torch.arange(26).view(1, 26, 1) + 25 * step
        wave = torch.sin(0.3 * (time % 1000) + phase) * torch.tensor([1.0, 0.5, -0.5, 0.1])
        length = torch.randint(1, 26, (8,))
        if step == BUG_STEP:
            length[2] = 0
        state = tuple(s.detach() for s in state)
        out, state = lstm(wave[:, :25], state)
        error = (head(out) - wave[:, 1:]).square().sum(2)
        counts = torch.arange(25) < length.unsqueeze(1)
        loss = ((error * counts).sum(1) / length).mean()  # BUG
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 5.0)
        optimizer.step()
    print(f"{loss.item():.9g} {sum(p.double().sum() for p in parameters).item():.17g}")


main()
