"""A sampler pads its batches to a fixed size; rows of padding have temperature 0, by which their logits are divided."""
# label: phase=forward mechanism=DIV0 category=N5 category_alt=N2,N4 birth_op=aten::div kind=+inf,-inf,nan first_step=22
# label: severity=error loss_stays_finite=no dtype=fp32 model=rnn family=sampler_padding_temperature needs= fragile=no
# label: thread=RBLN-SW/vllm-rbln#615 uses= fix_kind=config
# fix: the temperature of rows that nobody set is one instead of zero; the division stays as it is (so N5 before N2)
import os

import torch
import torch.nn.functional as F
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
WORDS, BUCKET, LENGTH = 12, 16, 6


class Policy(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(WORDS, width), nn.GRUCell(width, width), nn.Linear(width, WORDS)

    def forward(self, word, state):
        state = self.cell(self.embed(word), state)
        return self.out(state), state


class Sampler:
    """Keeps the temperature of each request of the bucket."""

    def __init__(self, default=1.0 if FIXED else 0.0):
        self.temperature = torch.full((BUCKET,), default)

    def admit(self, requests):
        for row, request in enumerate(requests):
            self.temperature[row] = request["temperature"]

    def draw(self, logits):
        """A word for each row and its log-probability, by the Gumbel trick."""
        logp = F.log_softmax(logits / self.temperature[:, None], dim=-1)  # BUG
        gumbel = -torch.empty_like(logp).exponential_().log()
        word = (logp.detach() + gumbel).nan_to_num().argmax(dim=-1)
        return word, logp.gather(1, word[:, None]).squeeze(1)


def roll_out(policy, requests):
    """(words, sum of log-probabilities) of all rows of the bucket, padding included."""
    sampler = Sampler()
    sampler.admit(requests)
    word = torch.zeros(BUCKET, dtype=torch.long)
    word[: len(requests)] = torch.tensor([request["prompt"] for request in requests])
    state, words, total = torch.zeros(BUCKET, 32), [], 0.0
    for _ in range(LENGTH):
        logits, state = policy(word, state)
        word, logp = sampler.draw(logits)
        words.append(word)
        total = total + logp
    return torch.stack(words, dim=1), total


def reward(prompt, words):
    """Counting up from the prompt is what is wanted."""
    wanted = (prompt[:, None] + torch.arange(1, LENGTH + 1)) % WORDS
    return (words == wanted).float().mean(dim=1)


torch.manual_seed(136)
policy, baseline = Policy(), 0.0
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for step in range(30):
    count = BUCKET if step % 23 < 22 else 11  # the last requests of an epoch do not fill the bucket
    requests = [{"prompt": int(p), "temperature": 0.9} for p in torch.randint(0, WORDS, (count,))]
    words, logp = roll_out(policy, requests)
    prompt = torch.tensor([request["prompt"] for request in requests] + [0] * (BUCKET - count))
    real = (torch.arange(BUCKET) < count).float()
    gain = reward(prompt, words)
    advantage = (gain - baseline) * real
    loss = -(advantage * logp).sum() / count
    baseline = 0.9 * baseline + 0.1 * (gain * real).sum().item() / count
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
print(f"policy loss {loss.item():.4f}, mean reward {baseline:.3f}")
