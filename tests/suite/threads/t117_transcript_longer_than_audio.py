"""A wav2vec2 recogniser with CTC: a clip was cut too early, fewer frames are left than letters in its transcript."""
# label: phase=forward mechanism=DATA category=N4 category_alt=N1,N5 birth_op=aten::_ctc_loss kind=+inf first_step=22
# label: severity=error loss_stays_finite=no dtype=fp32 model=transformer family=speech_ctc_infeasible needs= fragile=no
# label: thread=wenet-e2e/wenet#2299 uses=transformers fix_kind=config
# fix: the loss is told to take infinite terms and their gradients out; the data stays as it is (so N4 before N1)
import os

import torch
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

FIXED = os.environ.get("FIXED") == "1"
LETTERS = 12


def recogniser():
    return Wav2Vec2ForCTC(Wav2Vec2Config(
        vocab_size=LETTERS, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        conv_dim=(16, 16, 16), conv_stride=(4, 4, 2), conv_kernel=(8, 4, 4), num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2, num_feat_extract_layers=3, feat_extract_norm="layer", mask_time_prob=0.0,
        layerdrop=0.0, hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, feat_proj_dropout=0.0,
        final_dropout=0.0, ctc_loss_reduction="mean", ctc_zero_infinity=FIXED, pad_token_id=0))


def utterances(step, count=4, letters=8):
    """Every letter is a tone of a twelfth of a second; (audio, which samples are audio, letters)."""
    text = torch.randint(1, LETTERS, (count, letters))
    time = torch.arange(160) / 2000
    audio = torch.sin(6.28 * (60 + 40 * text[..., None]) * time).flatten(1) + 0.05 * torch.randn(count, letters * 160)
    heard = torch.ones_like(audio, dtype=torch.long)
    if step == 22:
        heard[2, 200:] = 0  # the cutter kept the transcript
    return audio * heard, heard, text


torch.manual_seed(117)
model = recogniser().train()
model.freeze_feature_encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(28):
    audio, heard, text = utterances(step)
    loss = model(input_values=audio, attention_mask=heard, labels=text).loss  # BUG
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"ctc loss {loss.item():.3f}")
