"""A tiny Llama in bfloat16: rotary embedding, RMS norm, grouped heads, left padding, eager attention and sampling."""
import torch
from state import show
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
                                     num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32,
                                     attn_implementation="eager", pad_token_id=0, bos_token_id=1, eos_token_id=2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(20):
    tokens = torch.randint(3, 64, (2, 8))
    mask = torch.arange(8)[None, :] >= torch.tensor([0, 7])[:, None]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(input_ids=tokens, attention_mask=mask.long(), labels=tokens.masked_fill(~mask, -100)).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.eval()
written = model.generate(tokens[:1], max_new_tokens=4, do_sample=True, top_k=5, top_p=0.9)
print(written.tolist())
show(model, written)
