"""Near to ND118: an embedding of deviation 1 is the output layer as well, where its results are divided by the root of
its width."""
import torch
import torch.nn.functional as F
from torch import nn

WIDTH = 64


class Model(nn.Module):
    def __init__(self, tokens=50):
        super().__init__()
        self.embedding = nn.Embedding(tokens, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens):
        hidden = self.norm(self.layer(self.embedding(tokens)))
        return F.linear(hidden, self.embedding.weight) * WIDTH**-0.5


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
follower = torch.randperm(50)
for step in range(100):
    tokens = torch.randint(0, 50, (128,))
    loss = F.cross_entropy(model(tokens), follower[tokens])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
