"""Preference tuning of a language model with ORPO on one-word answers: log(1 - p) of an answer that became certain."""
# label: phase=forward mechanism=DOM category=N4 category_alt=N8,N3 birth_op=aten::log1p kind=-inf first_step=25
# label: severity=error loss_stays_finite=no dtype=bf16 model=transformer family=orpo_log_odds needs= fragile=no
# label: thread=huggingface/trl#1473 uses=transformers fix_kind=stable_function
# fix: log(1 - exp(x)) is computed by a function that is stable for x near 0, on float32 values; bfloat16 only brings the
# fix: day forward on which exp(x) is 1 (so N4 before N8)
import os

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

FIXED = os.environ.get("FIXED") == "1"
YES, NO, MAYBE = 10, 11, 12


def log_one_minus_exp(x):
    if FIXED:
        x = x.float().clamp(max=-1e-6)
        return torch.where(x > -0.7, torch.log(-torch.expm1(x)), torch.log1p(-torch.exp(x)))
    return torch.log1p(-torch.exp(x))  # BUG


def answer_logps(model, tokens):
    """The mean log-probability of the answer, which is the last token."""
    logits = model(input_ids=tokens).logits[:, -2]
    return F.log_softmax(logits, dim=-1).gather(1, tokens[:, -1:]).squeeze(1)


def odds_ratio_loss(chosen, rejected, beta=0.1):
    log_odds = (chosen - rejected) - (log_one_minus_exp(chosen) - log_one_minus_exp(rejected))
    return -chosen.mean() - beta * F.logsigmoid(log_odds).mean()


def preferences(count=16, length=3):
    """Questions of digits; yes is right where the last digit is even, no elsewhere, maybe never."""
    question = torch.randint(0, 10, (count, length))
    right = torch.where(question[:, -1:] % 2 == 0, YES, NO)
    return torch.cat([question, right], dim=1), torch.cat([question, torch.full_like(right, MAYBE)], dim=1)


torch.manual_seed(109)
model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=16, n_embd=32, n_layer=2, n_head=4,
                                   resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)).bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
for step in range(80):
    chosen, rejected = preferences()
    loss = odds_ratio_loss(answer_logps(model, chosen), answer_logps(model, rejected))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"orpo loss {loss.item():.5f}")
