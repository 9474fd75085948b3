"""A tiny DETR finds squares: padded pictures, matching, losses of every layer, pictures that show nothing.

The bug: one late update has a learning rate of 1e30.
"""
import torch
from loop import Loop, arguments
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig

args = arguments(4)
backbone = ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic",
                        out_features=["stage2"])
model = DetrForObjectDetection(DetrConfig(
    backbone_config=backbone, d_model=16, num_queries=4, encoder_layers=1, decoder_layers=2, encoder_ffn_dim=32,
    decoder_ffn_dim=32, encoder_attention_heads=2, decoder_attention_heads=2, auxiliary_loss=True, num_labels=3))
loop = Loop(model, args, rate=1e-3)


def pictures(count):
    """Pictures of 32 by up to 32 points, which points are there, and boxes as centre and size; the first has none."""
    widths = torch.randint(16, 33, (count,))
    pixels = torch.randn(count, 3, 32, 32) * 0.1
    there = (torch.arange(32) < widths[:, None])[:, None, :].expand(count, 32, 32)
    labels = []
    for index, width in enumerate(widths.tolist()):
        kinds, boxes = torch.randint(0, 3, (min(index, 2),)), []
        for kind in kinds.tolist():
            size, x, y = 8, *torch.randint(0, width - 8, (2,)).tolist()
            pixels[index, kind, y:y + size, x:x + size] += 1.0
            boxes.append([(x + size / 2) / width, (y + size / 2) / 32, size / width, size / 32])
        labels.append({"class_labels": kinds, "boxes": torch.tensor(boxes).reshape(-1, 4)})
    return (pixels * there[:, None], there.long()), labels


def loss_of(judged):
    (pixels, there), labels = pictures(4)
    return judged(pixel_values=pixels, pixel_mask=there, labels=labels).loss


for step in range(args.steps):
    (pixels, there), labels = pictures(4)
    with loop.autocast():
        loss = model(pixel_values=pixels, pixel_mask=there, labels=labels).loss
    if step == args.bug_step:
        loop.leap()
    loop.update(loss)
    if step % 80 == 79:
        loop.evaluate(loss_of)
loop.show(loss)
