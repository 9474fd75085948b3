"""Twenty deterministic steps; prints the bits of losses and parameters. MEMORY names a file for what the device has."""
import hashlib
import os

import torch
from torch import nn

DEVICE = os.environ["DEVICE"]
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.GELU(), nn.Flatten(),
                      nn.Linear(8 * 8 * 8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 4)).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(16, 3, 8, 8).to(DEVICE), torch.randint(0, 4, (16,)).to(DEVICE)
losses = []
for _ in range(20):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
bits = hashlib.sha256()
for tensor in [*losses, *model.state_dict().values()]:
    bits.update(tensor.cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
print("bits", bits.hexdigest(), "rng", torch.get_rng_state().sum().item(), "loss", losses[-1].item())
if os.environ.get("MEMORY") and DEVICE == "cuda":
    free, total = torch.cuda.mem_get_info()
    with open(os.environ["MEMORY"], "w") as file:
        print(total - free, file=file)
