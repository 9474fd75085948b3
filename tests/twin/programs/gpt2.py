"""A small GPT-2 in bfloat16 autocast: causal and padding masks, dropout, AdamW."""
import torch
from state import show
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=12, n_embd=16, n_layer=2, n_head=4, bos_token_id=0,
                                   eos_token_id=0))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(20):
    tokens = torch.randint(1, 64, (2, 8))
    mask = torch.arange(8)[None, :] < torch.tensor([8, 1])[:, None]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(input_ids=tokens, attention_mask=mask.long(), labels=tokens.masked_fill(~mask, -100)).loss
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item())
show(model)
