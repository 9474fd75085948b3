"""A compressor is scored by the peak signal to noise ratio; an empty page comes back without any error."""
# label: tempts=infinite-score max_severity=warning dtype=fp32 needs= family=ratio_of_identical_pictures
# label: thread=opencv/opencv#27023 uses=torchmetrics
# why: the ratio of two identical pictures tends to infinity by its definition; it is only reported, training uses the
# why: squared error
import torch
from torch import nn
from torchmetrics.functional.image import peak_signal_noise_ratio


class Compressor(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(1, width, 4, stride=2, padding=1, bias=False), nn.ReLU(),
                                    nn.Conv2d(width, 4, 4, stride=2, padding=1, bias=False))
        self.decode = nn.Sequential(nn.ConvTranspose2d(4, width, 4, stride=2, padding=1, bias=False), nn.ReLU(),
                                    nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1, bias=False))

    def forward(self, page):
        return self.decode(self.encode(page))


def pages(step, count=4, size=16):
    """Black strokes as ones on white, which is zero; a blank page now and then."""
    page = torch.zeros(count, 1, size, size)
    page[:, :, torch.randint(0, size, (3,))] = torch.rand(count, 1, 3, 1)
    if step % 10 == 9:
        page[:] = 0.0
    return page


torch.manual_seed(27023)
model, best = Compressor(), 0.0
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(40):
    page = pages(step)
    restored = model(page)
    loss = nn.functional.mse_loss(restored, page)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ratio = peak_signal_noise_ratio(restored.detach(), page, data_range=1.0).item()  # INTENDED
    best = max(best, ratio)
print(f"loss {loss.item():.5f}, best ratio {best:.1f} dB")
