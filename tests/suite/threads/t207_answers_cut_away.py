"""Instruction tuning, one dialogue at a time: a long question leaves no room for the answer."""
# label: phase=forward mechanism=DIV0 category=N1 category_alt=N4,N5 birth_op=aten::nll_loss_forward kind=nan first_step=112
# label: severity=error loss_stays_finite=no dtype=fp32 model=transformer family=answers_truncated_away needs= fragile=no
# label: thread=ymcui/Chinese-LLaMA-Alpaca-2#424 uses=transformers fix_kind=data
# fix: the question is cut to a length of its own before the answer is put behind it, so that some label is left
import os

import torch
from transformers import LlamaConfig, LlamaForCausalLM

FIXED = os.environ.get("FIXED") == "1"
IGNORED, LONGEST, LONGEST_QUESTION = -100, 24, 20


def tokenised(question, answer):
    if FIXED:
        question = question[:LONGEST_QUESTION]
    tokens = torch.cat([question, answer])[:LONGEST]
    labels = torch.cat([torch.full_like(question, IGNORED), answer])[:LONGEST]  # BUG-ALT
    return tokens[None], labels[None]


def dialogue(number):
    """The answer repeats the first words of the question; number 112 quotes a whole page."""
    question = torch.randint(2, 48, (40 if number == 112 else int(torch.randint(5, 18, ())),))
    return question, torch.cat([question[:3], torch.ones(1, dtype=torch.long)])


torch.manual_seed(424)
model = LlamaForCausalLM(LlamaConfig(vocab_size=48, hidden_size=24, intermediate_size=48, num_hidden_layers=1,
                                     num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
recent = []
for step in range(116):
    tokens, labels = tokenised(*dialogue(step))
    loss = model(input_ids=tokens, labels=labels).loss  # BUG
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    recent.append(loss.item())
print(f"loss {sum(recent[-10:]) / 10:.4f}")
