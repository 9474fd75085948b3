"""Quantisation-aware training: observers show a range from inf to -inf until the first batch has gone through."""
# label: tempts=sentinel max_severity=none dtype=fp32 needs= family=quantiser_observer_range
# label: thread=pytorch/pytorch#87708 uses=
# why: an empty range is what the minimum and maximum of nothing are; calibration replaces both, and a frozen observer
# why: that never saw data is not asked for its scale
import warnings

import torch
from torch import nn
from torch.ao.quantization import FakeQuantize, MinMaxObserver, PerChannelMinMaxObserver

warnings.filterwarnings("ignore")


class QuantLinear(nn.Module):
    """A layer whose input and weight are rounded as int8 would round them."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.activation = FakeQuantize(MinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8)  # INTENDED
        self.weight = FakeQuantize(PerChannelMinMaxObserver, quant_min=-128, quant_max=127,  # INTENDED
                                   dtype=torch.qint8, qscheme=torch.per_channel_symmetric, ch_axis=0)

    def forward(self, x):
        return nn.functional.linear(self.activation(x), self.weight(self.linear.weight), self.linear.bias)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = QuantLinear(12, 32), QuantLinear(32, 3)
        self.exit = QuantLinear(32, 3)  # an early exit that is trained in another run

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


torch.manual_seed(101)
model, teacher = Student(), torch.randn(12, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(40):
    x = torch.randn(64, 12)
    loss = nn.functional.cross_entropy(model(x), (x @ teacher).argmax(dim=1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 30:
        for quantiser in (model.first, model.second):
            quantiser.activation.disable_observer()
            quantiser.weight.disable_observer()
print(f"loss {loss.item():.4f}, input scale {model.first.activation.scale.item():.5f}")
