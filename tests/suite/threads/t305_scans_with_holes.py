"""Brain scans were warped to an atlas; outside of the scanner's view a volume holds NaN, and the loader keeps it."""
# label: phase=data mechanism=DATA category=N1 category_alt=
# label: birth_op=external,aten::from_numpy,aten::_to_copy,aten::stack kind=nan first_step=16
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=missing_voxels needs= fragile=no
# label: thread=aramis-lab/clinicadl#106 uses= fix_kind=data
# fix: the data set replaces what is not a number by zero when it reads a volume, and warns
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FIXED = os.environ.get("FIXED") == "1"


def write_scans(folder, count=96, size=8):
    """Volumes with or without a dark spot; volume 67 moved half out of view while it was taken."""
    random = np.random.default_rng(106)
    for index in range(count):
        volume = random.normal(1.0, 0.1, (1, size, size, size)).astype(np.float32)
        if index % 2:
            volume[:, 2:5, 2:5, 2:5] *= 0.3
        if index == 67:
            volume[:, -2:] = np.nan
        np.save(os.path.join(folder, f"{index}.npy"), volume)


class Scans(Dataset):
    def __init__(self, folder, count=96):
        self.folder, self.count = folder, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        volume = torch.from_numpy(np.load(os.path.join(self.folder, f"{index}.npy")))  # BUG
        if FIXED:
            volume = volume.nan_to_num()
        return volume, index % 2


torch.manual_seed(106)
model = nn.Sequential(nn.Conv3d(1, 8, 3), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d(2), nn.Flatten(),
                      nn.Linear(8 * 27, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
with tempfile.TemporaryDirectory() as folder:
    write_scans(folder)
    for volume, sick in DataLoader(Scans(folder), batch_size=4):  # BUG-ALT
        loss = nn.functional.cross_entropy(model(volume), sick)  # BUG-ALT
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.4f}")
