"""A language model kept in half precision is trained by Adam with its default eps, which rounds to zero there."""
# label: phase=optimizer mechanism=DIV0 category=N5 category_alt=N8 birth_op=aten::addcdiv_,aten::_foreach_addcdiv_
# label: kind=+inf,-inf,nan first_step=0
# label: severity=error loss_stays_finite=yes dtype=fp16 model=transformer family=half_adam needs= fragile=no
# label: thread=https://discuss.pytorch.org/t/adam-half-precision-nans/1765 uses=transformers fix_kind=config
# fix: eps=1e-4 is passed to Adam, a number that half precision can hold; the type stays, so N8 is only the other answer
import os

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

FIXED = os.environ.get("FIXED") == "1"


def text(count=8, length=20):
    """Lines in which letter follows letter with few surprises; a few letters are rare."""
    start = torch.randint(0, 25, (count, 1))
    return (start + torch.arange(length)) % 25


torch.manual_seed(1765)
config = GPT2Config(vocab_size=30, n_positions=20, n_embd=24, n_layer=1, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0,
                    attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)
model = GPT2LMHeadModel(config).half()
words = model.transformer.wte.weight
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **({"eps": 1e-4} if FIXED else {}))
for step in range(8):
    lines = text()
    logits = model(input_ids=lines[:, :-1]).logits
    loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), lines[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # BUG
    if not words.isfinite().all():
        break
print(f"loss {loss.item():.3f}, embedding {words.float().norm().item():.3f}")
