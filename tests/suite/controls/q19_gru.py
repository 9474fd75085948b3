"""A GRU on packed sequences whose update gates start saturated, so that gate slopes are zero."""
# label: tempts=saturation max_severity=none dtype=fp32 needs=
import os

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

DEVICE = os.environ.get("DEVICE", "cpu")
WIDTH = 16


class Remember(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, 1)
        with torch.no_grad():  # half of the units are open wide, the others hold their state
            self.gru.bias_ih_l0[WIDTH:WIDTH + WIDTH // 2] = 40.0
            self.gru.bias_ih_l0[WIDTH + WIDTH // 2:2 * WIDTH] = -40.0

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        output, last = self.gru(packed)
        output, _ = pad_packed_sequence(output, batch_first=True, padding_value=float("-inf"))
        return self.head(output.max(dim=1).values + last[0])


torch.manual_seed(19)
model = Remember().to(DEVICE)
opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for step in range(5):
    lengths = torch.tensor([9, 4, 7, 1, 9, 2])
    x = torch.randn(6, 9, 4).to(DEVICE)
    goal = x[:, 0, :1]
    loss = nn.functional.smooth_l1_loss(model(x, lengths), goal)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
print(f"gru: loss {loss.item():.3f}")
