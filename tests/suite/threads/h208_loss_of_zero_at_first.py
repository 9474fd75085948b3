"""Group-relative policy optimisation of a language model: the loss is zero in every first step after sampling."""
# label: tempts=zero-loss max_severity=none dtype=fp32 needs= family=group_relative_policy
# label: thread=huggingface/open-r1#239 uses=transformers
# why: advantages of a group sum to zero and the ratio of policies is one, so the loss is zero and its gradient is not;
# why: completely normal, says the maintainer
import torch
from transformers import GPT2Config, GPT2LMHeadModel

WORDS, PROMPT, ANSWER, GROUP = 16, 3, 4, 8


def policy():
    return GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=16, n_embd=24, n_layer=1, n_head=2, resid_pdrop=0.0,
                                      embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0))


@torch.no_grad()
def answers(model, prompt):
    """Random continuations of a prompt, a group of them."""
    tokens = prompt.repeat(GROUP, 1)
    for _ in range(ANSWER):
        share = model(input_ids=tokens).logits[:, -1].softmax(dim=-1)
        tokens = torch.cat([tokens, torch.multinomial(share, 1)], dim=1)
    return tokens


def log_shares(model, tokens):
    logits = model(input_ids=tokens).logits[:, PROMPT - 1:-1].log_softmax(dim=-1)
    return logits.gather(2, tokens[:, PROMPT:, None]).squeeze(2)


torch.manual_seed(239)
model, losses = policy(), []
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(16):
    if step % 2 == 0:
        tokens = answers(model, torch.randint(0, WORDS, (1, PROMPT)))
        reward = (tokens[:, PROMPT:] % 2 == 0).float().sum(dim=1)  # even words are wanted
        advantage = (reward - reward.mean()) / (reward.std() + 1e-4)
        old = log_shares(model, tokens).detach()
    ratio = torch.exp(log_shares(model, tokens) - old)
    gain = torch.minimum(ratio * advantage[:, None], ratio.clamp(0.8, 1.2) * advantage[:, None])
    loss = -gain.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"losses {losses[0]:.4f}, {losses[1]:.4f}, {losses[-2]:.4f}, {losses[-1]:.4f}")
