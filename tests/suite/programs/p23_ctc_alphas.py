"""CTC re-implemented in log space: logsumexp over cells that are all -inf has a NaN slope."""
# label: phase=backward mechanism=INDET category=N3 category_alt=N7,N4 birth_op=aten::sub kind=nan first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=logsumexp needs= fragile=no
import os

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = os.environ.get("DEVICE", "cpu")
NEG_INF = float("-inf")
BLANK = 0


def ctc_loss(log_probs, target):
    """Negative log likelihood of one target under (time, symbols) log probabilities."""
    extended = torch.full((2 * len(target) + 1,), BLANK)
    extended[1::2] = target
    skip = torch.zeros(len(extended), dtype=torch.bool)
    skip[2:] = (extended[2:] != BLANK) & (extended[2:] != extended[:-2])
    extended, skip = extended.to(log_probs.device), skip.to(log_probs.device)

    emit = log_probs[:, extended]
    alpha = F.pad(emit[0, :2], (0, len(extended) - 2), value=NEG_INF)  # INTENDED
    for t in range(1, len(emit)):
        one = F.pad(alpha[:-1], (1, 0), value=NEG_INF)  # INTENDED
        two = F.pad(alpha[:-2], (2, 0), value=NEG_INF)  # INTENDED
        two = two.masked_fill(~skip, NEG_INF)  # INTENDED
        alpha = torch.logsumexp(torch.stack([alpha, one, two]), dim=0) + emit[t]  # BUG
    return -torch.logsumexp(alpha[-2:], dim=0)


class Recogniser(nn.Module):
    def __init__(self, symbols=5):
        super().__init__()
        self.rnn = nn.GRU(6, 10, batch_first=True)
        self.head = nn.Linear(10, symbols)

    def forward(self, frames):
        return self.head(self.rnn(frames)[0]).log_softmax(dim=-1)


torch.manual_seed(23)
model = Recogniser().to(DEVICE)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
transcripts = [[1], [3, 4], [2, 4, 1], [2]]  # three letters leave dead cells that matter
for transcript in transcripts:
    frames = torch.randn(1, 6, 6).to(DEVICE)
    loss = ctc_loss(model(frames)[0], torch.tensor(transcript))
    opt.zero_grad()
    loss.backward()
    opt.step()
print("ctc loss %.4f" % loss.item())
