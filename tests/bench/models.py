"""Models to measure on, in plain torch, and one training step of each: GPT-2, a Llama-style decoder, ViT and ResNet.

    step = training_step("gpt2-124m-b8", "cuda")      # everything made on that device; step() trains once
    names()                                           # all there are; `-tiny` ones are for machines without a GPU

Weights and activations are bfloat16, the optimizer is AdamW on lists (torch's default on a GPU), ResNet's SGD with
momentum. On `meta` nothing is computed: attention is then named outright, as torch would pick its own for no device.
"""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


def attention(q, k, v, causal):
    if q.is_meta:
        return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)[0]
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


class Block(nn.Module):
    """A pre-norm transformer block: GPT-2's, and ViT's without the causal mask."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.a(x)).split(c, 2))
        x = x + self.out(attention(q, k, v, self.causal).transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.b(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, words, length, width, layers, heads):
        super().__init__()
        self.word, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, causal=True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.word.weight

    def forward(self, x):
        x = self.word(x) + self.place.weight[:x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class LlamaBlock(nn.Module):
    """RMSNorm written out, rotary embedding, gated feed-forward: many small element-wise ops, as in published code."""

    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.a, self.b = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    @staticmethod
    def normed(x, weight):
        y = x.float()
        return weight * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

    @staticmethod
    def turned(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def forward(self, x, cos, sin):
        b, t, c = x.shape
        y = self.normed(x, self.a)
        q, k, v = (part(y).view(b, t, self.heads, -1).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = attention(self.turned(q, cos, sin), self.turned(k, cos, sin), v, True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        y = self.normed(x, self.b)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, words, length, width, layers, heads, hidden):
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, hidden) for _ in range(layers))
        self.norm, self.head = nn.Parameter(torch.ones(width)), nn.Linear(width, words, bias=False)
        half = width // heads // 2
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(half) / half)
        self.register_buffer("cos", torch.cat((angles, angles), 1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat((angles, angles), 1).sin(), persistent=False)

    def forward(self, x):
        cos, sin = self.cos[:x.shape[1]], self.sin[:x.shape[1]]
        x = self.word(x)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(LlamaBlock.normed(x, self.norm))


class Vit(nn.Module):
    def __init__(self, classes, pixels, patch, width, layers, heads):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.place = nn.Parameter(torch.zeros(1, (pixels // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(Block(width, heads, causal=False) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(x), -1, -1), x), 1) + self.place
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        wide = 4 * width
        self.a, self.na = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.b, self.nb = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.c, self.nc = nn.Conv2d(width, wide, 1, bias=False), nn.BatchNorm2d(wide)
        self.skip = nn.Identity()
        if stride != 1 or channels != wide:
            self.skip = nn.Sequential(nn.Conv2d(channels, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))

    def forward(self, x):
        y = F.relu(self.na(self.a(x)), inplace=True)
        y = F.relu(self.nb(self.b(y)), inplace=True)
        return F.relu(self.nc(self.c(y)) + self.skip(x), inplace=True)


class ResNet(nn.Module):
    def __init__(self, classes, width, layers):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        blocks, channels = [], width
        for stage, count in enumerate(layers):
            for i in range(count):
                blocks.append(Bottleneck(channels, width << stage, 2 if i == 0 and stage > 0 else 1))
                channels = 4 * (width << stage)
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(channels, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x)), inplace=True), 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


@dataclass(frozen=True)
class Work:
    title: str
    model: type
    shape: dict  # of the model
    batch: int
    length: int = 0  # words a sequence, pixels a side
    kind: str = "words"  # or pixels


WORKS = {
    "gpt2-124m-b1": Work("GPT-2 124M, batch 1 x 1024", Gpt2,
                         dict(words=50257, length=1024, width=768, layers=12, heads=12), 1, 1024),
    "gpt2-124m-b8": Work("GPT-2 124M, batch 8 x 1024", Gpt2,
                         dict(words=50257, length=1024, width=768, layers=12, heads=12), 8, 1024),
    "gpt2-350m": Work("GPT-2 350M, batch 8 x 1024", Gpt2,
                      dict(words=50257, length=1024, width=1024, layers=24, heads=16), 8, 1024),
    "llama-1b": Work("Llama-style 1B, batch 2 x 2048", Llama,
                     dict(words=32000, length=2048, width=2048, layers=16, heads=16, hidden=5632), 2, 2048),
    "vit-b": Work("ViT-B/16, batch 64 of 224 x 224", Vit,
                  dict(classes=1000, pixels=224, patch=16, width=768, layers=12, heads=12), 64, 224, "pixels"),
    "resnet-50": Work("ResNet-50, batch 128 of 224 x 224", ResNet,
                      dict(classes=1000, width=64, layers=(3, 4, 6, 3)), 128, 224, "pixels"),
    "gpt2-tiny": Work("GPT-2 of two layers, batch 2 x 32", Gpt2,
                      dict(words=512, length=32, width=64, layers=2, heads=4), 2, 32),
    "llama-tiny": Work("Llama-style of two layers, batch 2 x 32", Llama,
                       dict(words=512, length=32, width=64, layers=2, heads=4, hidden=160), 2, 32),
    "vit-tiny": Work("ViT of two layers, batch 2 of 32 x 32", Vit,
                     dict(classes=10, pixels=32, patch=8, width=64, layers=2, heads=4), 2, 32, "pixels"),
    "resnet-tiny": Work("ResNet of four blocks, batch 2 of 64 x 64", ResNet,
                        dict(classes=10, width=16, layers=(1, 1, 1, 1)), 2, 64, "pixels"),
}


def names(tiny=False):
    return [name for name in WORKS if name.endswith("-tiny") == tiny]


def batch_of(work, device):
    """Inputs and targets."""
    if work.kind == "words":
        words = torch.randint(0, work.shape["words"], (work.batch, work.length + 1), device=device)
        return words[:, :-1], words[:, 1:].flatten()
    images = torch.randn(work.batch, 3, work.length, work.length, dtype=torch.bfloat16, device=device)
    return images, torch.randint(0, work.shape["classes"], (work.batch,), device=device)


def training_step(name, device, compiled=None):
    """A function that trains once and returns the loss, still on its device. `compiled`: a mode of torch.compile."""
    work = WORKS[name]
    torch.manual_seed(0)
    with torch.device(device):
        model = work.model(**work.shape).to(torch.bfloat16)
    run = torch.compile(model, mode=compiled) if compiled else model
    parameters = list(model.parameters())
    if work.model is ResNet:
        optimizer = torch.optim.SGD(parameters, lr=1e-2, momentum=0.9, foreach=True)
    else:
        optimizer = torch.optim.AdamW(parameters, lr=1e-4, foreach=True)
    inputs, targets = batch_of(work, device)

    def step():
        out = run(inputs)
        loss = F.cross_entropy(out.flatten(0, -2).float(), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    step.model = model
    return step
