"""Each loader worker standardises its own shard of sensor logs; one shard holds a stuck sensor."""
# label: phase=data mechanism=DIV0 category=N1 category_alt=N2 birth_op=aten::div kind=nan first_step=1
# label: severity=error loss_stays_finite=no dtype=fp32 model=mlp family=data needs=worker fragile=no
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

DEVICE = os.environ.get("DEVICE", "cpu")


def make_shard(index, rows=24, sensors=6):
    """The readings of one logger. In shard 1 the third sensor repeats one value."""
    generator = torch.Generator().manual_seed(320 + index)
    readings = 20.0 + 5.0 * torch.rand(rows, sensors, generator=generator)
    if index == 1:
        readings[:, 2] = 21.5
    return readings


class ShardedLogs(IterableDataset):
    """Shard i belongs to worker i, which scales it with its own statistics."""

    def __iter__(self):
        worker = get_worker_info()
        readings = make_shard(worker.id)
        centred = readings - readings[0]
        scaled = centred / centred.abs().amax(dim=0)  # BUG
        for row, reading in zip(scaled, readings):
            yield row, reading.mean()


def main():
    torch.manual_seed(32)
    loader = DataLoader(ShardedLogs(), batch_size=8, num_workers=2)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)).to(DEVICE)
    opt = torch.optim.SGD(model.parameters(), lr=1e-4)
    for rows, target in loader:  # BUG-ALT
        rows, target = rows.to(DEVICE), target.to(DEVICE)  # BUG-ALT
        loss = nn.functional.l1_loss(model(rows).squeeze(1), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"sensor shards: last loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
