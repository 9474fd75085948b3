"""A selective state-space layer forgets the softplus of its step size: negative steps amplify the state."""
# label: phase=forward mechanism=OVF category=N7 category_alt=N2 birth_op=aten::add,aten::mul kind=+inf,-inf,nan first_step=24
# label: severity=error loss_stays_finite=no dtype=fp32 model=ssm family=ssm_step_size needs= fragile=no
# label: thread=alxndrTL/mamba.py#53 uses= fix_kind=structure
# fix: the projected step size goes through a softplus, so that the decay never exceeds one
import os

import torch
import torch.nn.functional as F
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class SelectiveScan(nn.Module):
    def __init__(self, width, states=8):
        super().__init__()
        self.inp = nn.Linear(width, 2 * width)
        self.select = nn.Linear(width, 2 * states)
        self.step_size = nn.Linear(width, width)
        self.a_log = nn.Parameter(torch.arange(1, states + 1).float().log().repeat(width, 1))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        u, gate = self.inp(x).chunk(2, dim=-1)
        u = F.silu(u)
        b, c = self.select(u).chunk(2, dim=-1)
        delta = self.step_size(u)
        if FIXED:
            delta = F.softplus(delta)
        decay = torch.exp(delta[..., None] * -self.a_log.exp())  # BUG-ALT
        drive = (delta * u)[..., None] * b[:, :, None]
        state, outputs = torch.zeros_like(drive[:, 0]), []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + drive[:, t]  # BUG
            outputs.append((state * c[:, t, None]).sum(dim=-1))
        return self.out(torch.stack(outputs, dim=1) * F.silu(gate))


class Tagger(nn.Module):
    def __init__(self, vocabulary=12, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.norm, self.mixer = nn.LayerNorm(width), SelectiveScan(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        h = self.embed(tokens)
        return self.head(h + self.mixer(self.norm(h)))


torch.manual_seed(111)
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(36):
    length = 24 if step < 24 else 320  # the curriculum goes from sentences to documents
    tokens = torch.randint(0, 12, (4, length))
    target = tokens.cumsum(dim=1) % 12
    loss = F.cross_entropy(model(tokens).flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"tagging loss {loss.item():.4f}")
