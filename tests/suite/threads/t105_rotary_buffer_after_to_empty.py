"""A language model is built without memory, then filled from a checkpoint that does not hold its rotary frequencies."""
# label: phase=load mechanism=UNINIT category=N6 category_alt=N9 birth_op=aten::empty,aten::empty_like,aten::fill_ kind=nan first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=transformer family=rotary_after_to_empty needs= fragile=no
# label: thread=macwiatrak/Bacformer#36 uses=transformers fix_kind=init
# fix: the non-persistent rotary buffers are computed again after the memory was made, before the model is used
import os
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM

FIXED = os.environ.get("FIXED") == "1"
torch.use_deterministic_algorithms(True)  # fresh memory is filled with NaN, so the run repeats


def tiny_config():
    return LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                       num_key_value_heads=2, max_position_embeddings=64, attn_implementation="eager")


def pretrained_checkpoint(path):
    torch.manual_seed(105)
    torch.save(LlamaForCausalLM(tiny_config()).state_dict(), path)


def materialise(path):
    """As sharded training does: shapes first, memory on the device next, values from the file last."""
    with torch.device("meta"):
        model = LlamaForCausalLM(tiny_config())
    model.to_empty(device="cpu")  # BUG
    model.load_state_dict(torch.load(path, weights_only=True))
    if FIXED:
        rotary = model.model.rotary_emb
        size = tiny_config().hidden_size // tiny_config().num_attention_heads
        frequencies = 10000.0 ** (-torch.arange(0, size, 2).float() / size)
        rotary.inv_freq.copy_(frequencies)
        rotary.original_inv_freq.copy_(frequencies)
    return model


def batches(count, length=24):
    """Arithmetic in a small alphabet: each token follows from the two before."""
    for _ in range(count):
        rows = torch.randint(0, 64, (8, 2))
        for _ in range(length - 2):
            rows = torch.cat([rows, (rows[:, -1:] * 3 + rows[:, -2:-1]) % 64], dim=1)
        yield rows


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "tiny_llama.pt")
    pretrained_checkpoint(path)
    model = materialise(path)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for tokens in batches(6):
    loss = model(input_ids=tokens, labels=tokens).loss  # BUG-ALT
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"next token loss {loss.item():.3f}")
