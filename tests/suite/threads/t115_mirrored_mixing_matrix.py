"""An audio flow is converted to another order of channels: its determinant turns negative, and logdet is NaN."""
# label: phase=forward mechanism=DOM category=N2 category_alt=N4,N6 birth_op=aten::where,aten::scalar_tensor,aten::logdet,aten::log kind=nan first_step=25
# label: severity=error loss_stays_finite=no dtype=fp32 model=flow family=flow_logdet_sign needs= fragile=no
# label: thread=NVIDIA/waveglow#35 uses= fix_kind=stable_function
# fix: the logarithm of the absolute determinant replaces logdet, which knows positive determinants only; what was
# fix: loaded stays as it is (it is invertible, so N2 before N6)
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class InvertibleMixing(nn.Module):
    """A 1x1 convolution over grouped samples."""

    def __init__(self, channels):
        super().__init__()
        weight = torch.linalg.qr(torch.randn(channels, channels))[0]
        if torch.det(weight) < 0:
            weight[:, 0] = -weight[:, 0]
        self.conv = nn.Conv1d(channels, channels, 1, bias=False)
        self.conv.weight.data.copy_(weight[..., None])

    def forward(self, z):
        weight = self.conv.weight.squeeze(-1)
        log_det = torch.det(weight).abs().log() if FIXED else torch.logdet(weight)  # BUG
        return self.conv(z), len(z) * z.shape[2] * log_det


class Coupling(nn.Module):
    def __init__(self, channels, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(channels // 2, width, 3, padding=1), nn.ReLU(),
                                 nn.Conv1d(width, channels, 1))
        nn.init.zeros_(self.net[-1].weight)

    def forward(self, z):
        kept, changed = z.chunk(2, dim=1)
        shift, log_scale = self.net(kept).chunk(2, dim=1)
        log_scale = torch.tanh(log_scale)
        return torch.cat([kept, changed * log_scale.exp() + shift], dim=1), log_scale.sum()


class AudioFlow(nn.Module):
    def __init__(self, channels=8, depth=3):
        super().__init__()
        self.flows = nn.ModuleList(m for _ in range(depth) for m in (InvertibleMixing(channels), Coupling(channels)))

    def forward(self, audio):
        z, total = audio.unflatten(1, (-1, 8)).transpose(1, 2), 0.0
        for flow in self.flows:
            z, log_det = flow(z)
            total = total + log_det
        return (0.5 * z.square().sum() - total) / z.numel()

    @torch.no_grad()
    def reverse_groups(self):
        """For checkpoints that put the last sample of a group first."""
        for flow in self.flows[::2]:
            flow.conv.weight.copy_(flow.conv.weight[:, [1, 0, 2, 3, 4, 5, 6, 7]])


torch.manual_seed(115)
model = AudioFlow()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(34):
    if step == 25:
        model.reverse_groups()  # the released model goes on with the new layout
    time = torch.arange(256) / 64
    pitch = 1 + 3 * torch.rand(8, 1)
    loss = model(torch.sin(6.28 * pitch * time) + 0.05 * torch.randn(8, 256))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"nats per sample {loss.item():.4f}")
