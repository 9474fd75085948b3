"""An LSTM cell unrolled over time, and one that is fed the right answers: each time needs the state before it."""
import torch
from torch import nn

torch.manual_seed(0)
read, write = nn.LSTMCell(8, 16), nn.LSTMCell(8, 16)
out = nn.Linear(16, 8)
optimizer = torch.optim.SGD([*read.parameters(), *write.parameters(), *out.parameters()], lr=0.05)
for step in range(24):
    x, y = torch.randn(16, 24, 8), torch.randn(16, 24, 8)
    state = torch.zeros(16, 16), torch.zeros(16, 16)
    for time in range(24):
        state = read(x[:, time], state)
    answers = torch.empty(16, 24, 8)
    for time in range(24):
        state = write(y[:, time], state)
        answers[:, time] = out(state[0])
    loss = (answers[:, :-1] - y[:, 1:]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
