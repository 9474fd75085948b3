"""A tiny Mixtral: eight experts, some of them idle, router loss, sliding window, accumulation."""
import torch
from state import show
from transformers import MixtralConfig, MixtralForCausalLM

torch.manual_seed(0)
config = MixtralConfig(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                       num_attention_heads=4, num_key_value_heads=2, num_local_experts=8,
                       num_experts_per_tok=2, sliding_window=8, max_position_embeddings=32,
                       output_router_logits=True, router_aux_loss_coef=0.02,
                       pad_token_id=0, bos_token_id=1, eos_token_id=2)
model = MixtralForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(50):
    optimizer.zero_grad()
    for _ in range(2):
        mask = torch.arange(12)[None, :] < torch.randint(1, 13, (2,))[:, None]
        tokens = torch.randint(3, 64, (2, 12)).masked_fill(~mask, 0)
        tokens[:, 0] = 1
        labels = tokens.masked_fill(~mask, -100)
        labels[:, 1] = tokens[:, 1]
        loss = model(input_ids=tokens, attention_mask=mask.long(), labels=labels).loss / 2
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 10 == 9:
        print(step, loss.item())
show(model)
