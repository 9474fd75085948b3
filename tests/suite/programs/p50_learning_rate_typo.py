"""A regression MLP trained with lr=1e4 where 1e-4 was meant."""
# label: phase=forward mechanism=HYPER category=N5 category_alt=N4 birth_op=aten::mse_loss kind=+inf first_step=2
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=divergence needs= fragile=no
import os

import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
CONFIG = {"lr": 1e4, "hidden": 16, "epochs": 2, "batch": 16}


def make_data(rows=48):
    x = torch.rand(rows, 5)
    y = 3.0 * x[:, :1] - x[:, 1:2] + 0.5
    return torch.utils.data.TensorDataset(x, y)


def train_epoch(model, loader, opt, criterion):
    total = 0.0
    for x, y in loader:
        x, y = x.to(DEVICE), y.to(DEVICE)
        opt.zero_grad()
        prediction = model(x)
        loss = criterion(prediction, y)  # BUG
        loss.backward()
        opt.step()
        total += loss.item() * len(x)
    return total / len(loader.dataset)


torch.manual_seed(50)
loader = torch.utils.data.DataLoader(make_data(), batch_size=CONFIG["batch"])
model = nn.Sequential(
    nn.Linear(5, CONFIG["hidden"]),
    nn.LeakyReLU(0.2),
    nn.Linear(CONFIG["hidden"], 1),
).to(DEVICE)
opt = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"])
for epoch in range(CONFIG["epochs"]):
    mean_loss = train_epoch(model, loader, opt, nn.MSELoss())
print(f"regression: mean loss {mean_loss:.4g}")
