"""Depth estimation from a memory-mapped archive: a few frames hold pixels that are no number; resizing spreads them."""
# label: phase=data mechanism=DATA category=N1 category_alt= birth_op=external kind=nan first_step=25
# label: severity=error loss_stays_finite=no dtype=fp32 model=cnn family=depth_damaged_frames needs= fragile=no
# label: thread=prs-eth/Marigold#111 uses=torchvision fix_kind=data
# fix: frames that hold invalid pixels are found beforehand and left out of the list of training frames
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import functional as transforms

FIXED = os.environ.get("FIXED") == "1"


def write_archive(folder, frames=240, size=20):
    """Colours and depth of rendered rooms; the renderer left frames 203 and 219 with undefined reflections."""
    rng = np.random.default_rng(134)
    depth = np.linspace(1, 4, size, dtype=np.float32)[None, :, None] * rng.uniform(0.8, 1.2, (frames, 1, size))
    colour = (depth / 4 + rng.normal(0, 0.05, (frames, size, size))).astype(np.float32)
    colour[203, 4:6, 7] = np.nan
    colour[219, 15, 2:9] = np.nan
    for name, array in (("colour", colour), ("depth", depth.astype(np.float32))):
        np.save(os.path.join(folder, name + ".npy"), array)


class RenderedRooms(Dataset):
    def __init__(self, folder, size=16):
        self.colour, self.depth = (np.load(os.path.join(folder, name + ".npy"), mmap_mode="r")
                                   for name in ("colour", "depth"))
        self.size = [size, size]
        self.frames = list(range(len(self.colour)))
        if FIXED:
            self.frames = [i for i in self.frames if np.isfinite(self.colour[i]).all()]

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, index):
        frame = self.frames[index]
        colour = torch.from_numpy(self.colour[frame].copy())[None]  # BUG
        depth = torch.from_numpy(self.depth[frame].copy())[None]
        colour = transforms.resize(colour, self.size, antialias=True)  # BUG-ALT
        return transforms.normalize(colour, [0.5], [0.25]), transforms.resize(depth, self.size, antialias=True)


torch.manual_seed(134)
model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
                      nn.Conv2d(16, 1, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
with tempfile.TemporaryDirectory() as folder:
    write_archive(folder)
    for colour, depth in DataLoader(RenderedRooms(folder), batch_size=8):
        loss = nn.functional.l1_loss(model(colour), depth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"depth loss {loss.item():.4f}")
