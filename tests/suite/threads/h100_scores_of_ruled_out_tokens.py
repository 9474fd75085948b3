"""Sampling with top-k gives scores of -inf to all tokens that it rules out; those of the chosen tokens are finite."""
# label: tempts=sentinel max_severity=none dtype=fp32 needs= family=generation_scores
# label: thread=huggingface/transformers#28906 uses=transformers
# why: a processor rules tokens out by -inf, the softmax of such scores is right; the answer in the thread was that it
# why: is meant so, and that the logits before the processors can be asked for
import torch
from transformers import GPT2Config, GPT2LMHeadModel


def counting_texts(count=16, length=12, words=20):
    start = torch.randint(0, words, (count, 1))
    return (start + torch.arange(length)) % words


def fit(model, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(steps):
        tokens = counting_texts()
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def sampled(model, prompts):
    """Tokens, and the mean log-probability of each continuation under the scores it was drawn from."""
    out = model.generate(prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=6, do_sample=True,  # INTENDED
                         top_k=3, temperature=0.8, pad_token_id=0, output_scores=True, return_dict_in_generate=True)
    logp = []
    for position, scores in enumerate(out.scores):
        chosen = out.sequences[:, prompts.shape[1] + position, None]
        logp.append(scores.log_softmax(dim=-1).gather(1, chosen))  # INTENDED
    return out.sequences, torch.cat(logp, dim=1).mean(dim=1)


torch.manual_seed(100)
model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=32, n_embd=32, n_layer=2, n_head=4, bos_token_id=0,
                                   eos_token_id=None, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
loss = fit(model, steps=24)
sequences, quality = sampled(model.eval(), counting_texts(8, 4))
best = quality.argmax()
print(f"loss {loss:.3f}, best of 8 {sequences[best].tolist()} at {quality[best].item():.3f}")
