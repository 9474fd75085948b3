"""A decoder in half precision: scores of padding are strongly negative, and the mask is added to them."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N7,N2 birth_op=aten::add kind=-inf first_step=22
# label: severity=error loss_stays_finite=no dtype=fp16 model=transformer family=half_added_mask needs= fragile=no
# label: thread=huggingface/transformers#17437 uses= fix_kind=dtype
# fix: masked scores are kept at the lowest finite number of the type, and the softmax is computed in single precision
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
PADDING, VOCABULARY = 0, 30


class Attention(nn.Module):
    def __init__(self, width=32, heads=2):
        super().__init__()
        self.heads, self.scale = heads, (width // heads)**-0.5
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, h, mask):
        query, key, value = self.split(self.query(h)) * self.scale, self.split(self.key(h)), self.split(self.value(h))
        scores = query @ key.transpose(-1, -2) + mask  # BUG
        if FIXED:
            scores = scores.clamp(min=torch.finfo(scores.dtype).min)
            share = scores.softmax(dim=-1, dtype=torch.float32).to(scores.dtype)
        else:
            share = scores.softmax(dim=-1)
        return self.out((share @ value).transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    def __init__(self, width=32, length=10):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.norm, self.attention = nn.LayerNorm(width), Attention(width)

    def forward(self, tokens):
        length = tokens.shape[1]
        hidden = torch.ones(length, length).triu(1).bool() | (tokens == PADDING)[:, None]
        h = self.words(tokens) + self.places.weight[:length]
        mask = torch.zeros(hidden.shape, dtype=h.dtype).masked_fill(hidden, torch.finfo(h.dtype).min)
        return h + self.attention(self.norm(h), mask[:, None])


@torch.no_grad()
def pretrained():
    """A decoder that has learned to make padding, which never counted, ask for what no word is."""
    decoder, direction = Decoder(), torch.randn(32)
    direction = (direction - direction.mean()) / direction.std()
    decoder.words.weight[PADDING] = 20 * direction
    decoder.attention.query.weight += direction / 4
    decoder.attention.key.bias -= 8
    return decoder.half().requires_grad_(False)


def prompts(step, count=6, length=10):
    tokens = torch.randint(1, VOCABULARY, (count, length))
    if step >= 22:
        tokens[2, :4] = PADDING  # from here on prompts differ in length
    return tokens


torch.manual_seed(17437)
decoder, head = pretrained(), nn.Linear(32, 3)
optimizer = torch.optim.AdamW(head.parameters(), lr=5e-3)
for step in range(28):
    tokens = prompts(step)
    logits = head(decoder(tokens).float().mean(dim=1))
    loss = nn.functional.cross_entropy(logits, tokens[:, -1] % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
