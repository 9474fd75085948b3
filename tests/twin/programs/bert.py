"""A tiny BERT learns masked tokens and pair labels: padding, dropout, warm-up and decay."""
import torch
from state import show
from transformers import BertConfig, BertForPreTraining, get_linear_schedule_with_warmup

torch.manual_seed(0)
model = BertForPreTraining(BertConfig(vocab_size=48, hidden_size=32, num_hidden_layers=2,
                                      num_attention_heads=4, intermediate_size=64,
                                      max_position_embeddings=24, pad_token_id=0))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01)
schedule = get_linear_schedule_with_warmup(optimizer, 5, 50)
for step in range(50):
    lengths = torch.randint(6, 17, (8,))
    mask = torch.arange(16)[None, :] < lengths[:, None]
    tokens = torch.randint(4, 48, (8, 16)).masked_fill(~mask, 0)
    hidden = (torch.rand(8, 16) < 0.15) & mask
    hidden[:, 1] = True
    loss = model(input_ids=tokens.masked_fill(hidden, 3), attention_mask=mask.long(),
                 token_type_ids=(torch.arange(16)[None, :] >= lengths[:, None] // 2).long(),
                 labels=tokens.masked_fill(~hidden, -100),
                 next_sentence_label=(tokens[:, 1] > 24).long()).loss
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 10 == 9:
        print(step, loss.item())
show(model)
