"""Triplet fine-tuning of a sentence encoder; a deduplication step failed and an anchor is its own positive."""
# label: phase=backward mechanism=SING category=N3 category_alt=N4,N1 birth_op=aten::div,aten::mul kind=+inf,nan
# label: first_step=21
# label: severity=error loss_stays_finite=yes dtype=fp32 model=transformer family=distance_at_zero needs= fragile=no
# label: thread=huggingface/sentence-transformers#4033 uses=transformers fix_kind=stable_function
# fix: the distance is taken by the vector norm, whose derivative at zero is zero, instead of a root of a sum of squares
import os

import torch
from torch import nn
from transformers import BertConfig, BertModel

FIXED = os.environ.get("FIXED") == "1"


class SentenceEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = BertModel(BertConfig(vocab_size=60, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                                         intermediate_size=48, hidden_dropout_prob=0.0,
                                         attention_probs_dropout_prob=0.0), add_pooling_layer=False)

    def forward(self, tokens):
        return self.bert(input_ids=tokens).last_hidden_state.mean(dim=1)


def euclidean(a, b):
    if FIXED:
        return torch.linalg.vector_norm(a - b, dim=-1)
    return (a - b).square().sum(dim=-1).sqrt()  # BUG


def triplets(step, size=8, length=7):
    anchor = torch.randint(0, 60, (size, length))
    positive = anchor.clone()
    positive[:, step % length] = torch.randint(0, 60, (size,))
    negative = torch.randint(0, 60, (size, length))
    changed = (positive != anchor).any(dim=1)
    positive[~changed, 0] = (anchor[~changed, 0] + 1) % 60
    if step == 21:
        positive[3] = anchor[3]
    return anchor, positive, negative


torch.manual_seed(40)
encoder = SentenceEncoder()
optimizer = torch.optim.AdamW(encoder.parameters(), lr=2e-4)
for step in range(22):
    anchor, positive, negative = (encoder(tokens) for tokens in triplets(step))
    loss = torch.relu(euclidean(anchor, positive) - euclidean(anchor, negative) + 5.0).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
words = encoder.bert.embeddings.word_embeddings.weight
print(f"triplet loss {loss.item():.4f}, word vectors {words.norm().item():.3f}")
