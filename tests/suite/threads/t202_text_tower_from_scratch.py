"""Training from scratch of a model that was published for its weights: two parameters have no start values."""
# label: phase=load mechanism=UNINIT category=N6 category_alt=N9 birth_op=aten::empty,aten::fill_ kind=nan first_step=0
# label: severity=error loss_stays_finite=no dtype=fp32 model=transformer family=contrastive_unset_parameters needs= fragile=no
# label: thread=openai/CLIP#15 uses=timm fix_kind=init
# fix: the model gets an initialiser of its own that draws the position embedding and the projection of the text tower
import os

import timm
import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"
torch.use_deterministic_algorithms(True)  # fresh memory is filled with NaN, so the run repeats
WORDS, LENGTH, WIDTH, SHARED = 40, 6, 32, 24


class TextTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Parameter(torch.empty(LENGTH, WIDTH))  # BUG
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1)
        self.projection = nn.Parameter(torch.empty(WIDTH, SHARED))  # BUG-ALT
        if FIXED:
            nn.init.normal_(self.places, std=0.01)
            nn.init.normal_(self.projection, std=WIDTH**-0.5)

    def forward(self, tokens):
        h = self.layers(self.words(tokens) + self.places)  # BUG-ALT
        return h[:, -1] @ self.projection  # BUG-ALT


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.vision = timm.create_model("test_vit", pretrained=False, num_classes=SHARED, img_size=32)
        self.text = TextTower()
        self.log_scale = nn.Parameter(torch.tensor(2.6))

    def forward(self, pictures, tokens):
        a, b = (nn.functional.normalize(h, dim=-1) for h in (self.vision(pictures), self.text(tokens)))
        return self.log_scale.exp() * a @ b.T


torch.manual_seed(15)
model = Contrast()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
same = torch.arange(8)
for step in range(4):
    tokens = torch.randint(0, WORDS, (8, LENGTH))
    pictures = torch.randn(8, 3, 32, 32) * 0.2 + tokens[:, :3, None, None] / WORDS
    logits = model(pictures, tokens)
    loss = (nn.functional.cross_entropy(logits, same) + nn.functional.cross_entropy(logits.T, same)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"contrastive loss {loss.item():.4f}")
