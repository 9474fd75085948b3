"""The best checkpoint, kept as .npz, carries infinite BatchNorm statistics and is restored."""
# label: phase=load mechanism=STATE category=N6 category_alt=N1 birth_op=aten::copy_ kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=init needs= fragile=no
import io
import os

import numpy as np
import torch
from torch import nn

DEVICE = os.environ.get("DEVICE", "cpu")


def save_npz(model):
    """A checkpoint file as another run left it: an overflow went into the running statistics."""
    arrays = {k: v.detach().cpu().numpy().copy() for k, v in model.state_dict().items()}
    arrays["1.running_mean"][2] = np.inf
    arrays["1.running_var"][2] = np.inf
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def restore(model, blob):
    with np.load(io.BytesIO(blob)) as archive:
        state = {k: torch.from_numpy(archive[k]) for k in archive.files}  # BUG-ALT
    model.load_state_dict(state)  # BUG


torch.manual_seed(6)
net = nn.Sequential(
    nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 36, 4)
).to(DEVICE)
best = save_npz(net)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
images, labels = torch.randn(8, 3, 6, 6), torch.randint(0, 4, (8,))
net.train()
for step in range(4):
    if step == 2:  # plateau: back to the best weights, statistics frozen from here on
        restore(net, best)
        net[1].eval()
    loss = nn.functional.cross_entropy(net(images.to(DEVICE)), labels.to(DEVICE))
    opt.zero_grad()
    loss.backward()
    opt.step()
print("p63 loss", loss.item())
