"""A small U-Net of Stable Diffusion's kind learns to draw from words: velocities, no signal at the last time, weights
by the signal to noise ratio, guidance without words, sampling between.

The bug: one late step weighs the loss as if noise were predicted, which divides by the ratio: zero at the last time.
"""
import torch
from diffusers import DDIMScheduler, DDPMScheduler, UNet2DConditionModel
from diffusers.training_utils import compute_snr
from loop import Loop, arguments

TIMES = 50
args = arguments(3)
model = UNet2DConditionModel(
    sample_size=8, in_channels=4, out_channels=4, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    cross_attention_dim=8, attention_head_dim=4)
loop = Loop(model, args, rate=2e-3)
words = torch.randn(5, 3, 8)  # of the last the prompt without words is made
schedule = {"num_train_timesteps": TIMES, "beta_schedule": "scaled_linear", "prediction_type": "v_prediction",
            "rescale_betas_zero_snr": True}
noising = DDPMScheduler(**schedule)
sampling = DDIMScheduler(**schedule, clip_sample=False, timestep_spacing="trailing")


def pictures(count):
    """Pictures with one bright quarter, and the words for it."""
    kind = torch.randint(0, 4, (count,))
    clean = torch.full((count, 4, 8, 8), -0.5)
    for picture, quarter in zip(clean, kind.tolist()):
        row, column = 4 * (quarter // 2), 4 * (quarter % 2)
        picture[:, row:row + 4, column:column + 4] = 1.0
    return clean, words[torch.where(torch.rand(count) < 0.1, 4, kind)]


def weights(times, of_noise):
    ratio = compute_snr(noising, times)
    wanted = ratio.clamp(max=5.0)
    if of_noise:
        return wanted / ratio  # BUG
    return wanted / (ratio + 1)


def error_of(judged):
    sampling.set_timesteps(4)
    drawn = torch.randn(2, 4, 8, 8)
    prompt = torch.cat([words[4:].expand(2, 3, 8), words[:2]])
    for time in sampling.timesteps:
        without, with_words = judged(drawn.repeat(2, 1, 1, 1), time, encoder_hidden_states=prompt).sample.chunk(2)
        guided = without + 3.0 * (with_words - without)
        drawn = sampling.step(guided.float(), time, drawn).prev_sample
    return drawn.square().mean()


for step in range(args.steps):
    clean, prompt = pictures(4)
    times = torch.randint(0, TIMES, (4,))
    times[0] = TIMES - 1
    noise = torch.randn_like(clean)
    with loop.autocast():
        guess = model(noising.add_noise(clean, noise, times), times, encoder_hidden_states=prompt).sample
    errors = (guess.float() - noising.get_velocity(clean, noise, times)).square().mean((1, 2, 3))
    loss = (weights(times, of_noise=step == args.bug_step) * errors).mean()
    loop.update(loss)
    if step % 80 == 79:
        loop.evaluate(error_of)
loop.show(loss)
