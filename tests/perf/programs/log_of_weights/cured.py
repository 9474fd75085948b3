"""A tabular model that writes its state to a JSON file after each step, to draw it later."""
import json
import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rows = torch.randn(4096, 32)
with tempfile.TemporaryDirectory() as folder:
    for step in range(80):
        x = rows[torch.randint(0, 4096, (256,))]
        loss = (model(x).squeeze(-1) - x.mean(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            state = {name: value.detach().numpy().tolist() for name, value in model.named_parameters()}
            with open(os.path.join(folder, f"{step}.json"), "w") as file:
                json.dump(state, file)
print(f"{loss.item():.3f}")
