"""A tiny T5 with gates sorts its input: relative positions, padding, tied scores, beam search between.

The bug: no word of one late batch counts, and the loss is the mean of nothing.
"""
import torch
from loop import Loop, arguments
from transformers import T5Config, T5ForConditionalGeneration

args = arguments(7)
model = T5ForConditionalGeneration(T5Config(
    vocab_size=24, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, relative_attention_num_buckets=8,
    relative_attention_max_distance=16, feed_forward_proj="gated-gelu", pad_token_id=0, eos_token_id=1,
    decoder_start_token_id=0))
loop = Loop(model, args, rate=3e-3)


def batch_of(count):
    """Words with padding at the end, which are there, and the words in order; -100 where none is."""
    there = torch.arange(8) < torch.randint(1, 9, (count, 1))
    tokens = torch.randint(2, 24, (count, 8))
    answers = tokens.masked_fill(~there, 99).sort(1).values
    return tokens.masked_fill(~there, 0), there.long(), answers.masked_fill(~there, -100)


def loss_of(judged):
    tokens, there, answers = batch_of(8)
    written = judged.generate(tokens[:2], attention_mask=there[:2], max_new_tokens=4, num_beams=2)
    return judged(input_ids=tokens, attention_mask=there, labels=answers).loss + written.sum()


for step in range(args.steps):
    tokens, there, answers = batch_of(8)
    if step == args.bug_step:
        answers = torch.full_like(answers, -100)
    with loop.autocast():
        loss = model(input_ids=tokens, attention_mask=there, labels=answers).loss
    loop.update(loss)
    if step % 80 == 79:
        loop.evaluate(loss_of)
loop.show(loss)
