"""A tiny Whisper spells tones: spectra on a logarithmic scale, SpecAugment, padded texts, generation between.

The bug: the logarithm of one late batch has no floor, and a recording is silent.
"""
import torch
from loop import Loop, arguments
from transformers import WhisperConfig, WhisperForConditionalGeneration

PADDING, START, END, LETTERS = 0, 1, 2, 8
args = arguments(1)
config = WhisperConfig(
    vocab_size=4 + LETTERS, num_mel_bins=8, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
    decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=16,
    max_target_positions=12, pad_token_id=PADDING, bos_token_id=START, decoder_start_token_id=START, eos_token_id=END,
    begin_suppress_tokens=None, dropout=0.1, apply_spec_augment=True, mask_time_prob=0.1, mask_time_length=4,
    mask_feature_prob=0.1, mask_feature_length=2)
model = WhisperForConditionalGeneration(config)
loop = Loop(model, args, rate=3e-3)
filters = torch.rand(8, 17).square()


def features(sound, floor):
    """What Whisper hears of a sound: powers in bands, in powers of ten, the softest 8 below the loudest."""
    spectrum = torch.stft(sound, 32, 16, window=torch.hann_window(32), return_complex=True)[..., :-1]
    bands = filters @ spectrum.abs().square()
    power = bands.clamp(min=floor).log10()  # BUG
    power = torch.maximum(power, power.amax((1, 2), keepdim=True) - 8)
    return (power + 4) / 4


def recordings(count, floor=1e-10):
    """Features of up to four tones of 128 samples each, and their letters; now and then of no sound at all."""
    lengths = torch.randint(0, 5, (count, 1))
    lengths[0] = 0
    letters = torch.randint(0, LETTERS, (count, 4))
    heard = torch.arange(4) < lengths
    waves = torch.sin(torch.arange(128) * (letters[..., None] + 1) * 0.3) * heard[..., None]
    text = torch.where(heard, letters + 4, -100)
    text = torch.cat([text, torch.full((count, 1), -100)], 1).scatter(1, lengths, END)
    return features(waves.flatten(1), floor), text


def loss_of(judged):
    with torch.autocast("cpu", enabled=False):  # float16 has no 1e-10
        sounds, text = recordings(8)
    written = judged.generate(input_features=sounds[:2], max_new_tokens=5, num_beams=2)
    return judged(input_features=sounds, labels=text).loss + written.sum()


for step in range(args.steps):
    sounds, text = recordings(8, floor=0.0 if step == args.bug_step else 1e-10)
    with loop.autocast():
        loss = model(input_features=sounds, labels=text).loss
    loop.update(loss)
    if step % 80 == 79:
        loop.evaluate(loss_of)
loop.show(loss)
