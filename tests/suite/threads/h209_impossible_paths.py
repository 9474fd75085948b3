"""The best path of tags is searched; tags that may not follow each other have log probability minus infinity."""
# label: tempts=minus-infinity max_severity=none dtype=fp32 needs= family=viterbi_impossible_steps
# label: thread=mattjj/pyhsmm#69 uses=
# why: a maximum deals with minus infinity as long as one path is possible, says the author; training uses scores of
# why: the right tags alone
import torch
from torch import nn

TAGS, FEATURES = 3, 8  # outside, begins, goes on
MAY_FOLLOW = torch.tensor([[True, True, False], [True, True, True], [True, True, True]])
STEPS = torch.zeros(TAGS, TAGS).masked_fill(~MAY_FOLLOW, float("-inf"))  # INTENDED
START = torch.tensor([0.0, 0.0, float("-inf")])  # INTENDED


@torch.no_grad()
def best_path(scores):
    """Tags of the best possible path through log probabilities of one sentence."""
    best, origins = START + scores[0], []
    for score in scores[1:]:
        best, origin = (best[:, None] + STEPS).max(dim=0)
        best = best + score
        origins.append(origin)
    path = [int(best.argmax())]
    for origin in reversed(origins):
        path.append(int(origin[path[-1]]))
    return path[::-1]


def sentence(length=12):
    tags = [int(torch.randint(0, 2, ()))]
    while len(tags) < length:
        choices = MAY_FOLLOW[tags[-1]].nonzero().squeeze(1)
        tags.append(int(choices[torch.randint(0, len(choices), ())]))
    tags = torch.tensor(tags)
    return SIGNS[tags] + 0.7 * torch.randn(length, FEATURES), tags


torch.manual_seed(69)
SIGNS = torch.randn(TAGS, FEATURES)
tagger = nn.Sequential(nn.Linear(FEATURES, 24), nn.Tanh(), nn.Linear(24, TAGS))
optimizer = torch.optim.Adam(tagger.parameters(), lr=5e-3)
for step in range(60):
    words, tags = sentence()
    loss = nn.functional.cross_entropy(tagger(words), tags)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
words, tags = sentence()
path = best_path(tagger(words).log_softmax(dim=-1).detach())
print(f"loss {loss.item():.4f}, {sum(a == b for a, b in zip(path, tags.tolist()))} of {len(path)} tags are right")
