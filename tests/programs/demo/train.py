"""Metric learning on scikit-learn's digits: the program that scripts/demo runs under numsan.

Trains a small vision transformer with a triplet loss until embeddings tell digits apart. Epoch 0 samples anchor and
positive from disjoint halves of a class. From epoch 1 both come from the whole class, with replacement, so sooner or
later an anchor is its own positive. Their distance is 0, the derivative of sqrt at 0 is infinite, and infinity times
zero is NaN: the loss of that batch is fine, its gradients are not, and every later loss is NaN.

`--eps 1e-12` adds that much under the root and stays finite: the healthy twin.
"""

import argparse
import time

import torch
from sklearn.datasets import load_digits
from torch import nn


class Embedder(nn.Module):
    """A two-layer vision transformer over the sixteen 2x2 patches of an 8x8 digit; returns one vector a digit."""

    def __init__(self, width=32, depth=2, heads=4, out=16):
        super().__init__()
        self.patches = nn.Conv2d(1, width, kernel_size=2, stride=2)
        self.positions = nn.Parameter(torch.randn(1, 16, width) * 0.02)
        block = nn.TransformerEncoderLayer(width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, out)

    def forward(self, images):
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.blocks(tokens)).mean(1))


class TripletLoss(nn.Module):
    """Asks that the positive be nearer to the anchor than the negative, by a margin."""

    def __init__(self, margin=1.0, eps=0.0):
        super().__init__()
        self.margin = margin
        self.eps = eps

    def distance(self, a, b):
        return ((a - b).pow(2).sum(-1) + self.eps).sqrt()

    def forward(self, anchor, positive, negative):
        near = self.distance(anchor, positive)
        far = self.distance(anchor, negative)
        return torch.relu(near - far + self.margin).mean()


class Triplets:
    """Draws batches of (anchor, positive, negative) images."""

    def __init__(self, images, labels, generator):
        self.images = images
        self.generator = generator
        self.members = [torch.nonzero(labels == c).flatten() for c in range(10)]

    def pick(self, members):
        return members[torch.randint(len(members), (1,), generator=self.generator)]

    def batch(self, size, oversample):
        rows = []
        for _ in range(size):
            mine, other = torch.randperm(10, generator=self.generator)[:2].tolist()
            members = self.members[mine]
            half = len(members) // 2
            anchors, positives = (members, members) if oversample else (members[:half], members[half:])
            rows.append(torch.cat([self.pick(anchors), self.pick(positives), self.pick(self.members[other])]))
        return self.images[torch.stack(rows, 1)]


def nearest_neighbour_accuracy(model, train_images, train_labels, test_images, test_labels):
    """Share of test digits whose nearest training digit has the same label."""
    model.eval()
    with torch.no_grad():
        nearest = torch.cdist(model(test_images), model(train_images)).argmin(1)
    model.train()
    return (train_labels[nearest] == test_labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=30, help="optimizer steps in an epoch")
    parser.add_argument("--batch", type=int, default=32, help="triplets in a batch")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--eps", type=float, default=0.0, help="added under the root of the distance")
    parser.add_argument("--seed", type=int, default=4)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images))
    images, labels = images[order], labels[order]
    train, test = slice(0, 1400), slice(1400, None)

    model = Embedder()
    criterion = TripletLoss(eps=args.eps)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    triplets = Triplets(images[train], labels[train], torch.Generator().manual_seed(args.seed))
    count = sum(p.numel() for p in model.parameters())
    print(f"{len(images)} digits, {count} parameters, {args.epochs} epochs of {args.steps} steps", flush=True)

    started = time.monotonic()
    for epoch in range(args.epochs):
        for step in range(args.steps):
            anchor, positive, negative = triplets.batch(args.batch, oversample=epoch >= 1)
            optimizer.zero_grad()
            loss = criterion(model(anchor), model(positive), model(negative))
            loss.backward()
            optimizer.step()
            if step % 10 == 9:
                print(f"epoch {epoch} step {step + 1:3d}/{args.steps} loss {loss.item():.4f}", flush=True)
        accuracy = nearest_neighbour_accuracy(model, images[train], labels[train], images[test], labels[test])
        print(f"epoch {epoch} done: test accuracy {accuracy:.3f} ({time.monotonic() - started:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
