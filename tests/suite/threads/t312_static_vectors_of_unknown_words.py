"""Static word vectors are kept in half precision and normalised; a text of unknown words only has a vector of zeros."""
# label: phase=forward mechanism=DIV0 category=N8 category_alt=N2,N1 birth_op=aten::div kind=nan first_step=14
# label: severity=error loss_stays_finite=no dtype=fp16 model=embedding family=static_embedding_norm needs= fragile=no
# label: thread=MinishLab/model2vec#369 uses= fix_kind=eps
# fix: what guards the division by the norm is large enough for half precision
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
UNKNOWN = 0


class StaticModel(nn.Module):
    """Means of word vectors, of unit length; the table is not trained."""

    def __init__(self, words=64, width=24):
        super().__init__()
        table = torch.randn(words, width)
        table[UNKNOWN] = 0.0
        self.register_buffer("table", table.half())

    def forward(self, tokens):
        mean = self.table[tokens].mean(dim=1)
        norm = mean.norm(dim=1, keepdim=True)
        if FIXED:
            return mean / norm.clamp(min=torch.finfo(norm.dtype).tiny)
        return mean / (norm + 1e-12)  # BUG


torch.manual_seed(369)
embed, head = StaticModel(), nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(head.parameters(), lr=1e-2)
for step in range(18):
    tokens = torch.randint(1, 64, (16, 5))
    tokens[torch.rand(16, 5) < 0.1] = UNKNOWN
    if step == 14:
        tokens[6] = UNKNOWN  # a text in another script
    logits = head(embed(tokens).float())
    loss = nn.functional.cross_entropy(logits, tokens[:, 0] % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
