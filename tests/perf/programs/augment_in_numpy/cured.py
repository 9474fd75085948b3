"""A CNN whose loop makes its own batches: numpy turns, mirrors and blurs them before the model gets them."""
import numpy
import torch
import torch.nn.functional as F
from torch import nn

rng = numpy.random.default_rng(0)
torch.manual_seed(0)
images = rng.random((512, 32, 32), dtype="float32")
labels = torch.randint(0, 10, (512,))


def augmented(rows):
    batch = images[rows].copy()
    for image in batch:
        if rng.random() < 0.5:
            image[:] = image[:, ::-1]
        image[:] = numpy.rot90(image, rng.integers(0, 4))
        for _ in range(3):
            image[1:-1] = (image[:-2] + image[1:-1] + image[2:]) / 3
            image[:, 1:-1] = (image[:, :-2] + image[:, 1:-1] + image[:, 2:]) / 3
    return batch


model = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(1800, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
order = [rng.integers(0, 512, size=64) for step in range(60)]
batches = [augmented(rows) for rows in order]  # what workers would do meanwhile
for rows, batch in zip(order, batches):
    x = torch.from_numpy(batch).unsqueeze(1).mul(2).sub(1)
    loss = F.cross_entropy(model(x), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
