"""A tiny ViT on drawn squares: mixup, label smoothing, bfloat16, cosine schedule, EMA weights."""
import torch
from state import show
from torch import nn
from transformers import ViTConfig, ViTForImageClassification

torch.manual_seed(0)
config = ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                   image_size=16, patch_size=4, hidden_dropout_prob=0.1, num_labels=4)
model = ViTForImageClassification(config)
average = torch.optim.swa_utils.AveragedModel(
    model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.95))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
lights = torch.distributions.Beta(0.4, 0.4)


def images(count):
    """Pictures with one bright quarter, and which one it is."""
    labels = torch.randint(0, 4, (count,))
    pixels = torch.randn(count, 3, 16, 16) * 0.1
    for picture, label in zip(pixels, labels.tolist()):
        row, column = 8 * (label // 2), 8 * (label % 2)
        picture[:, row:row + 8, column:column + 8] += 1.0
    spread = pixels.std((2, 3), keepdim=True) + 1e-6
    return (pixels - pixels.mean((2, 3), keepdim=True)) / spread, labels


for step in range(50):
    pixels, labels = images(16)
    share, order = lights.sample(), torch.randperm(16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(pixel_values=share * pixels + (1 - share) * pixels[order]).logits
        losses = [nn.functional.cross_entropy(logits, goal, label_smoothing=0.1)
                  for goal in (labels, labels[order])]
        loss = share * losses[0] + (1 - share) * losses[1]
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    average.update_parameters(model)
    if step % 10 == 9:
        print(step, loss.item())
model.eval()
pixels, labels = images(32)
with torch.no_grad():
    print("right", (model(pixel_values=pixels).logits.argmax(1) == labels).sum().item())
show(model, *average.parameters())
