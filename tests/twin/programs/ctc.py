"""A recurrent speech model under CTC: packed sequences, a sample too short for its text."""
import torch
from state import show
from torch import nn

torch.manual_seed(0)


class Recogniser(nn.Module):
    """Strided convolution, two-way GRU over packed sequences, scores over letters and the blank."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv1d(6, 16, 3, stride=2, padding=1)
        self.recurrent = nn.GRU(16, 16, batch_first=True, bidirectional=True)
        self.scores = nn.Linear(32, 9)

    def forward(self, sound, lengths):
        hidden = nn.functional.hardtanh(self.convolution(sound.transpose(1, 2)), 0, 20)
        lengths = (lengths + 1) // 2
        packed = nn.utils.rnn.pack_padded_sequence(hidden.transpose(1, 2), lengths,
                                                   batch_first=True, enforce_sorted=False)
        hidden, _ = nn.utils.rnn.pad_packed_sequence(self.recurrent(packed)[0], batch_first=True)
        return self.scores(hidden).log_softmax(-1).transpose(0, 1), lengths


model = Recogniser()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CTCLoss(zero_infinity=True)
for step in range(50):
    lengths = torch.tensor([24, 18, 12, 2])  # the last has one frame for two letters: no alignment
    letters = torch.randint(1, 9, (4, 5))
    counts = torch.tensor([5, 4, 2, 2])
    sound = torch.randn(4, 24, 6)
    for time in range(20):
        sound[:, time, :5] += nn.functional.one_hot(letters[:, time // 4] % 5, 5)
    logs, frames = model(sound, lengths)
    loss = criterion(logs, letters, frames, counts)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 10 == 9:
        print(step, loss.item())
show(model, logs)
