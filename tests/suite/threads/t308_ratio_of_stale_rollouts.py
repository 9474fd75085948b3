"""A policy is trained on answers that a server sampled a while ago; one token's ratio of probabilities overflows."""
# label: phase=forward mechanism=OVF category=N4 category_alt=N2 birth_op=aten::exp kind=+inf first_step=24
# label: severity=error loss_stays_finite=no dtype=fp32 model=policy family=ppo_log_ratio needs= fragile=no
# label: thread=radixark/miles#1363 uses= fix_kind=clamp
# fix: the logarithm of the ratio is clamped to 20 in magnitude before it is exponentiated
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Policy(nn.Module):
    def __init__(self, words=12, width=32):
        super().__init__()
        self.words, self.cell, self.out = nn.Embedding(words, width), nn.GRU(width, width, batch_first=True), \
            nn.Linear(width, words)

    def forward(self, tokens):
        hidden, _ = self.cell(self.words(tokens[:, :-1]))
        logs = self.out(hidden).log_softmax(dim=-1)
        return logs.gather(-1, tokens[:, 1:, None]).squeeze(-1)


def policy_loss(logs, sampled_logs, advantage, clip=0.2):
    difference = logs - sampled_logs
    if FIXED:
        difference = difference.clamp(-20.0, 20.0)
    ratio = difference.exp()  # BUG
    bounded = ratio.clamp(1 - clip, 1 + clip)
    return -torch.minimum(ratio * advantage, bounded * advantage).mean()  # BUG-ALT


def rollout(policy, stale):
    """Answers, the logarithms of the probabilities they were drawn with, and their advantages."""
    tokens = torch.randint(0, 12, (16, 9))
    with torch.no_grad():
        logs = policy(tokens)
    if stale:
        logs[3, 5] = -93.0  # the server's weights were older, and its arithmetic had fewer digits
    reward = (tokens == 7).float().sum(dim=1)
    advantage = reward - reward.mean()
    advantage[3] = 0.0  # this group of answers was all alike
    return tokens, logs, advantage[:, None]


torch.manual_seed(1363)
policy = Policy()
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
for step in range(28):
    tokens, sampled_logs, advantage = rollout(policy, stale=step == 24)
    loss = policy_loss(policy(tokens), sampled_logs, advantage)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
print(f"loss {loss.item():.5f}")
