"""A tiny wav2vec2 reads tones under CTC: SpecAugment, padded sounds, layers left out, a smaller and smaller blank.

The bug: one late text is longer than its sound has frames, so that no alignment exists.
"""
import torch
from loop import Loop, arguments
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

args = arguments(5)
model = Wav2Vec2ForCTC(Wav2Vec2Config(
    vocab_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, conv_dim=(16, 16),
    conv_stride=(4, 2), conv_kernel=(8, 4), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2,
    feat_extract_norm="layer", do_stable_layer_norm=True, mask_time_prob=0.2, mask_time_length=2,
    mask_feature_prob=0.1, mask_feature_length=2, layerdrop=0.1, ctc_loss_reduction="mean", pad_token_id=0))
loop = Loop(model, args, rate=2e-3)


def recordings(count, shortest=128):
    """Standardised sounds, which samples are there, and letters, the end of a text without a letter as -100."""
    lengths = torch.randint(shortest, 257, (count, 1))
    there = torch.arange(256) < lengths
    letters = torch.randint(1, 8, (count, 4))
    sound = torch.sin(torch.arange(64) * letters[..., None] * 0.4).flatten(1) + 0.05 * torch.randn(count, 256)
    sound = sound - (sound * there).sum(1, keepdim=True) / lengths
    sound = sound / ((sound.square() * there).sum(1, keepdim=True) / lengths + 1e-7).sqrt()
    return sound * there, there.long(), letters.masked_fill(torch.arange(0, 256, 64) >= lengths, -100)


def loss_of(judged):
    sound, there, letters = recordings(4)
    return judged(sound, attention_mask=there, labels=letters).loss


for step in range(args.steps):
    sound, there, letters = recordings(4)
    if step == args.bug_step:
        letters = letters.clamp(min=1).repeat(1, 20)
    with loop.autocast():
        loss = model(sound, attention_mask=there, labels=letters).loss
    loop.update(loss)
    if step % 80 == 79:
        loop.evaluate(loss_of)
loop.show(loss)
