"""A tiny wav2vec2 before it has seen any text: hidden frames, a code book chosen by Gumbel noise, negatives of which
those equal to the positive are masked with -inf.

The bug: one late sound is silence, and is divided by its deviation.
"""
import torch
from loop import Loop, arguments
from transformers import Wav2Vec2Config, Wav2Vec2ForPreTraining
from transformers.models.wav2vec2 import modeling_wav2vec2

args = arguments(6)
config = Wav2Vec2Config(
    hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, conv_dim=(16, 16),
    conv_stride=(4, 2), conv_kernel=(8, 4), num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2,
    num_codevectors_per_group=4, codevector_dim=8, proj_codevector_dim=8, num_negatives=6, layerdrop=0.0)
model = Wav2Vec2ForPreTraining(config)
loop = Loop(model, args, rate=1e-3)


def standardised(sound):
    return (sound - sound.mean(1, keepdim=True)) / sound.std(1, keepdim=True)  # BUG


def hidden_frames(frames):
    """Which frames are hidden, and for each the others that are held against it."""
    hidden = modeling_wav2vec2._compute_mask_indices((4, frames), mask_prob=0.4, mask_length=2)
    others = modeling_wav2vec2._sample_negative_indices((4, frames), config.num_negatives, mask_time_indices=hidden)
    return {"mask_time_indices": torch.tensor(hidden), "sampled_negative_indices": torch.tensor(others)}


def sounds():
    tones = torch.randint(1, 8, (4, 4, 1))
    return torch.sin(torch.arange(48) * tones * 0.4).flatten(1) + 0.05 * torch.randn(4, 192)


def loss_of(judged):
    sound = standardised(sounds())
    return judged(sound, **hidden_frames(int(judged._get_feat_extract_output_lengths(192)))).loss


for step in range(args.steps):
    sound = sounds()
    if step == args.bug_step:
        sound[1] = 0.0
    model.set_gumbel_temperature(max(2.0 * 0.99 ** step, 0.5))
    hidden = hidden_frames(int(model._get_feat_extract_output_lengths(192)))
    with loop.autocast():
        loss = model(standardised(sound), **hidden).loss / hidden["mask_time_indices"].sum()
    loop.update(loss)
    if step % 80 == 79:
        loop.evaluate(loss_of)
loop.show(loss)
