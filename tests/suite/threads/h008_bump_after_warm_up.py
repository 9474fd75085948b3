"""A detector's loss jumps where the warm-up ends and the rate is highest, and then falls again."""
# label: tempts=loss_bump max_severity=none dtype=fp32 needs= family=loss_bump
# label: thread=ultralytics/yolov5#10209 uses=torchvision
# why: fluctuation where the warm-up ends is ordinary, says the maintainer; the loss recovers within some steps
import torch
from torch import nn
from torchvision.models import mobilenet_v3_small


def factor(step, warm_up=10, total=40):
    return (step + 1) / warm_up if step < warm_up else 1.0 - 0.9 * (step - warm_up) / (total - warm_up)


torch.manual_seed(102)
model = mobilenet_v3_small(num_classes=5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.9)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
kinds = torch.randn(4, 3, 32, 32)
history = []
for step in range(40):
    label = torch.randint(0, 4, (16,))
    outputs = model(kinds[label] + 0.5 * torch.randn(16, 3, 32, 32))
    box = 0.25 * label.float()
    loss = nn.functional.cross_entropy(outputs[:, :4], label) + (outputs[:, 4] - box).square().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    schedule.step()
    history.append(loss.item())
print(f"loss: start {history[0]:.2f}, highest {max(history):.2f}, end {history[-1]:.2f}")
