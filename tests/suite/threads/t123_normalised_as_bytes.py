"""An image processor is told not to rescale; its deviation is cast to the type of the image, and 0.27 becomes 0."""
# label: phase=data mechanism=DIV0 category=N8 category_alt=N5,N1,N2 birth_op=aten::div kind=+inf,nan first_step=22
# label: severity=error loss_stays_finite=no dtype=fp32 model=transformer family=byte_normalisation needs= fragile=no
# label: thread=huggingface/transformers#27249 uses=transformers fix_kind=dtype
# fix: images that are not of a floating type are cast to one before they are normalised
import os

import torch
from transformers import ViTConfig, ViTForImageClassification

FIXED = os.environ.get("FIXED") == "1"


class ImageProcessor:
    def __init__(self, do_rescale=True, mean=(0.48, 0.46, 0.41), std=(0.27, 0.26, 0.28)):
        self.do_rescale, self.mean, self.std = do_rescale, mean, std

    def normalise(self, image):
        if FIXED and not image.is_floating_point():
            image = image.float()
        mean = torch.tensor(self.mean).view(-1, 1, 1).to(image.dtype)
        std = torch.tensor(self.std).view(-1, 1, 1).to(image.dtype)  # BUG-ALT
        return (image - mean) / std  # BUG

    def __call__(self, images):
        if self.do_rescale:
            images = images.float() / 255
        return self.normalise(images)


def flags(count=16, size=32):
    """Tricolours with noise, as bytes; the class is the hue of the middle."""
    label = torch.randint(0, 3, (count,))
    image = torch.full((count, 3, size, size), 40.0)
    image[torch.arange(count), label, :, size // 3: 2 * size // 3] = 200.0
    return (image + 20 * torch.randn_like(image)).clamp(0, 255).to(torch.uint8), label


torch.manual_seed(123)
model = ViTForImageClassification(ViTConfig(
    image_size=32, patch_size=8, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
    num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
processor = ImageProcessor()
for step in range(28):
    if step == 22:
        processor = ImageProcessor(do_rescale=False)  # "the new loader rescales by itself"
    images, labels = flags()
    loss = model(pixel_values=processor(images), labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"classification loss {loss.item():.4f}")
