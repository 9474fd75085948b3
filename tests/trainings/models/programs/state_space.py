"""A tiny Mamba repeats what it read: padding, the recurrence step by step, generation with its state.

The bug: one late update has a learning rate of 1e30.
"""
import torch
from loop import Loop, arguments
from transformers import MambaConfig, MambaForCausalLM

args = arguments(2)
config = MambaConfig(vocab_size=16, hidden_size=16, state_size=4, num_hidden_layers=2, conv_kernel=3, time_step_rank=2,
                     pad_token_id=0, bos_token_id=1, eos_token_id=2)
model = MambaForCausalLM(config)
loop = Loop(model, args, rate=5e-3)


def batch_of(count):
    """Words, which are there, and what each is followed by: after word 3 all come once more."""
    lengths = torch.randint(1, 6, (count, 1))
    words = torch.randint(4, 16, (count, 5))
    place = torch.arange(11)
    tokens = torch.where(place < lengths, words.gather(1, place.clamp(max=4).expand(count, 11)), 0)
    tokens = torch.where(place == lengths, 3, tokens)
    again = (place > lengths) & (place <= 2 * lengths)
    tokens = torch.where(again, words.gather(1, (place - lengths - 1).clamp(0, 4)), tokens)
    return tokens, (tokens > 0).long(), tokens.masked_fill(~again, -100)


def loss_of(judged):
    tokens, there, answers = batch_of(8)
    written = judged.generate(tokens[:2], attention_mask=there[:2], max_new_tokens=3, do_sample=True, top_k=4)
    return judged(input_ids=tokens, attention_mask=there, labels=answers).loss + written.sum()


for step in range(args.steps):
    tokens, there, answers = batch_of(8)
    with loop.autocast():
        loss = model(input_ids=tokens, attention_mask=there, labels=answers).loss
    if step == args.bug_step:
        loop.leap()
    loop.update(loss)
    if step % 80 == 79:
        loop.evaluate(loss_of)
loop.show(loss)
