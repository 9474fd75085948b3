"""A rotation is kept orthogonal by its SVD; a warm restart resets the matrix to the identity."""
# label: phase=backward mechanism=SING category=N3 category_alt=N6 birth_op=aten::div kind=nan,+inf,-inf first_step=3
# label: severity=error loss_stays_finite=yes dtype=fp32 model=linear family=slope needs= fragile=no
import os

import torch

DEVICE = os.environ.get("DEVICE", "cpu")
RESTART_EVERY = 3


def nearest_rotation(matrix):
    """The orthogonal polar factor, by the singular value decomposition."""
    u, _, vh = torch.linalg.svd(matrix)  # BUG
    return u @ vh


def rotation_about_z(angle):
    c, s = torch.cos(angle).item(), torch.sin(angle).item()
    return torch.tensor([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


torch.manual_seed(42)
cloud = torch.randn(40, 3)
truth = cloud @ rotation_about_z(torch.tensor(0.7)).T + 0.01 * torch.randn(40, 3)
cloud, truth = cloud.to(DEVICE), truth.to(DEVICE)

matrix = torch.nn.Parameter(torch.diag(torch.tensor([1.0, 0.8, 0.6])).to(DEVICE))
opt = torch.optim.Adam([matrix], lr=0.02)
for step in range(RESTART_EVERY + 1):
    if step > 0 and step % RESTART_EVERY == 0:
        with torch.no_grad():
            matrix.copy_(torch.eye(3))
    aligned = cloud @ nearest_rotation(matrix).T
    loss = (aligned - truth).square().sum(dim=1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"alignment after {step + 1} steps: loss {loss.item():.4f}")
