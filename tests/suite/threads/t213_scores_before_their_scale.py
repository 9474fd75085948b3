"""A GPT-2 in half precision: products of queries and keys leave the range before they are scaled."""
# label: phase=forward mechanism=OVF category=N8 category_alt=N7,N5 birth_op=aten::bmm,aten::matmul,aten::baddbmm kind=+inf,-inf first_step=22
# label: severity=error loss_stays_finite=no dtype=fp16 model=transformer family=half_attention_scores needs= fragile=no
# label: thread=huggingface/transformers#13573 uses=transformers fix_kind=dtype
# fix: the scores are computed in single precision and scaled inside of the product (an option of the model)
import os

import torch
from torch import nn
from transformers import GPT2Config, GPT2Model

FIXED = os.environ.get("FIXED") == "1"
SEPARATOR, VOCABULARY = 1, 40


@torch.no_grad()
def pretrained():
    """A body in which one direction of the stream, that of the separator, asks for attention louder than others."""
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=16, n_embd=64, n_layer=2, n_head=2, resid_pdrop=0.0,
                        embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager", reorder_and_upcast_attn=FIXED,
                        bos_token_id=0, eos_token_id=0)
    model, loud = GPT2Model(config), torch.randn(64)
    loud = loud - loud.mean()
    model.wte.weight.copy_(torch.where(torch.arange(VOCABULARY)[:, None] == SEPARATOR, loud, model.wte.weight))
    queries_and_keys = (torch.arange(192) < 128).float()
    for block in model.h:
        block.attn.c_attn.weight.add_(7.0 * torch.outer(loud / loud.norm(), queries_and_keys))
    return model.half().eval().requires_grad_(False)


def texts(step, count=8):
    tokens = torch.randint(2, VOCABULARY, (count, 12))
    if step == 22:
        tokens[3, 6] = SEPARATOR
    return tokens, (tokens[:, -1] % 3)


torch.manual_seed(13573)
body, head = pretrained(), nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(head.parameters(), lr=2e-3)
for step in range(26):
    tokens, kind = texts(step)
    features = body(input_ids=tokens).last_hidden_state[:, -1].float()  # BUG
    loss = nn.functional.cross_entropy(head(features), kind)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
