"""A tiny GPT-2 is tuned to preferences by DPO: a frozen reference, padded pairs, only answers count.

The bug: one late answer is empty, and the mean of its words' logarithms is taken.
"""
import copy

import torch
from loop import Loop, arguments
from transformers import GPT2Config, GPT2LMHeadModel

args = arguments(8)
model = GPT2LMHeadModel(GPT2Config(vocab_size=24, n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=1,
                                   eos_token_id=2, pad_token_id=0))
reference = copy.deepcopy(model).eval().requires_grad_(False)
loop = Loop(model, args, rate=2e-3)


def likelihood(judged, tokens, counts):
    """The mean logarithm of the probabilities of the words that count."""
    logits = judged(input_ids=tokens, attention_mask=(tokens > 0).long()).logits[:, :-1].float()
    each = logits.log_softmax(-1).gather(2, tokens[:, 1:, None]).squeeze(2)
    return (each * counts[:, 1:]).sum(1) / counts[:, 1:].sum(1)  # BUG


def pairs(count):
    """Prompts padded on the left, each with an answer of words below 12, then with one of words above."""
    prompt = torch.randint(3, 24, (count, 4)).masked_fill(torch.arange(4) < torch.randint(0, 4, (count, 1)), 0)
    low, high = torch.randint(3, 12, (count, 6)), torch.randint(12, 24, (count, 6))
    there = torch.arange(6) < torch.randint(1, 7, (2 * count, 1))
    answers = torch.cat([low, high]) * there
    tokens = torch.cat([prompt.repeat(2, 1), answers], 1)
    return tokens, torch.cat([torch.zeros(2 * count, 4, dtype=torch.bool), there], 1)


def preference_loss(judged, tokens, counts, beta=0.1):
    with torch.no_grad():
        before = likelihood(reference, tokens, counts)
    gained = likelihood(judged, tokens, counts) - before
    better, worse = gained.chunk(2)
    return -torch.nn.functional.logsigmoid(beta * (better - worse)).mean()


for step in range(args.steps):
    tokens, counts = pairs(4)
    if step == args.bug_step:
        counts[2] = False
    with loop.autocast():
        loss = preference_loss(model, tokens, counts)
    loop.update(loss)
    if step % 80 == 79:
        loop.evaluate(lambda judged: preference_loss(judged, *pairs(4)))
loop.show(loss)
