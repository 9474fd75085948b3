"""ReLU recurrence whose recurrent bias is re-initialised with 1e30 where 1e-30 was meant."""
# label: phase=forward mechanism=OVF category=N6 category_alt=N2,N4 birth_op=aten::mse_loss,aten::pow kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=init needs= fragile=no
import os

import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


class IRNN(nn.Module):
    """Identity-initialised recurrence for long toy sequences (the adding problem)."""

    def __init__(self, hidden=16):
        super().__init__()
        self.cell = nn.RNNCell(2, hidden, nonlinearity="relu")
        self.readout = nn.Linear(hidden, 1)
        with torch.no_grad():
            self.cell.weight_hh.copy_(torch.eye(hidden))
            self.cell.weight_ih.mul_(0.1)
            self.cell.bias_hh.zero_()

    def reset_recurrence(self):
        """Second stage of the recipe: identity again, with a tiny positive bias."""
        with torch.no_grad():
            self.cell.weight_hh.copy_(torch.eye(self.cell.hidden_size))
        nn.init.constant_(self.cell.bias_hh, 1e30)

    def forward(self, sequence):
        h = sequence.new_zeros(sequence.shape[0], self.cell.hidden_size)
        for t in range(sequence.shape[1]):
            h = self.cell(sequence[:, t], h)
        return self.readout(h).squeeze(-1)


torch.manual_seed(5)
model = IRNN().to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
seq = torch.rand(8, 10, 2)
target = seq[:, :, 0].sum(1) / 10
for step in range(4):
    if step == 2:
        model.reset_recurrence()
    prediction = model(seq.to(DEVICE))
    loss = nn.functional.mse_loss(prediction, target.to(DEVICE))  # BUG
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p62 loss", loss.item())
