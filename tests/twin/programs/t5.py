"""A tiny T5 writes its input backwards: relative positions, padding, Adafactor, beam search."""
import torch
from state import show
from transformers import T5Config, T5ForConditionalGeneration
from transformers.optimization import Adafactor

torch.manual_seed(0)
config = T5Config(vocab_size=32, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
                  pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
model = T5ForConditionalGeneration(config)
optimizer = Adafactor(model.parameters(), lr=1e-2, relative_step=False, scale_parameter=False)


def batch_of(size, length):
    """Tokens with padding at the end, and the same tokens reversed."""
    mask = torch.arange(length)[None, :] < torch.randint(3, length + 1, (size,))[:, None]
    tokens = torch.randint(2, 32, (size, length)).masked_fill(~mask, 0)
    return tokens, mask.long(), tokens.flip(1)


for step in range(50):
    tokens, mask, target = batch_of(8, 8)
    loss = model(input_ids=tokens, attention_mask=mask,
                 labels=target.masked_fill(target == 0, -100)).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, loss.item())
model.eval()
tokens, mask, _ = batch_of(2, 8)
written = model.generate(tokens, attention_mask=mask, max_new_tokens=5, num_beams=2)
print(written.tolist())
show(model, written)
