"""Bad values that are masked away, an overflow that a loss scaler catches, and a mask of -inf: a healthy training."""
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 127)
for _ in range(8):
    x = torch.randn(16, 8)
    safe = torch.where(x > 0, torch.log(x), torch.zeros(()))  # MASKED
    scores = torch.softmax(x.masked_fill(x > 1, float("-inf")), -1)
    loss = 50 * (model(safe) + model(scores)).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
steps = int(optimizer.state[model[0].weight]["step"])
sums = [float(parameter.detach().double().sum()) for parameter in model.parameters()]
print(scaler.get_scale() < 2.0 ** 127, "steps:", steps, sums)
