"""Windows are cut out of images and put back: views need both copies."""
import torch
from torch import nn

torch.manual_seed(0)


class Windowed(nn.Module):
    def __init__(self, width, side):
        super().__init__()
        self.side, self.norm, self.mix = side, nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        batch, height, width, channels = x.shape
        side = self.side
        cut = x.view(batch, height // side, side, width // side, side, channels).permute(0, 1, 3, 2, 4, 5).contiguous()
        windows = torch.relu(self.mix(self.norm(cut.view(-1, side * side, channels))))
        back = windows.view(batch, height // side, width // side, side, side, channels).permute(0, 1, 3, 2, 4, 5)
        return x + back.contiguous().view(batch, height, width, channels)


model = nn.Sequential(Windowed(24, 4), Windowed(24, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(24):
    x = torch.randn(8, 16, 16, 24)
    loss = (model(x) - x.roll(1, 0)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
