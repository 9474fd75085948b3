"""Values and updates that a 16- or 8-bit type cannot hold."""
import torch
import torch.nn.functional as F
from torch import nn


def log_of_a_lost_eps():
    """Distillation in half: 1e-8 is there to keep the logarithm finite, and is zero in half."""
    # expect: op=aten::log phase=forward kind=inf mechanism=UDF category=N8,N4 step=2
    student = nn.Linear(4, 3, bias=False).half()
    with torch.no_grad():
        student.weight.copy_(torch.tensor([[1.0], [0.0], [-1.0]]).expand(3, 4))
    teacher = torch.tensor([0.7, 0.2, 0.1]).half()
    opt = torch.optim.SGD(student.parameters(), lr=1e-3)
    for scale in (1.0, 1.0, 10.0, 1.0):
        probabilities = student(torch.full((2, 4), scale).half()).softmax(-1)
        loss = -(teacher * (probabilities + 1e-8).log()).sum(-1).mean()  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss, student.weight


def muted_rms_norm():
    """An RMSNorm in half: the square of 300 is infinite, its reciprocal root zero, and so is the layer."""
    # expect: op=aten::pow phase=forward kind=inf mechanism=OVF category=N8 step=2 finite=yes

    class RMSNorm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            power = x.pow(2).mean(-1, keepdim=True)  # BUG
            return self.weight * x * torch.rsqrt(power + 1e-5)

    model = nn.Sequential(nn.Linear(4, 8), RMSNorm(8), nn.Linear(8, 1)).half()
    nn.init.ones_(model[0].weight)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for scale in (1.0, 1.0, 100.0, 100.0):
        x = scale * (1 + torch.rand(6, 4)).half()
        loss = (model(x).float() - 1).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model[0].weight


def normalize_of_zero():
    """Retrieval in half: F.normalize has an eps of 1e-12, which half cannot hold; a padding row is zero."""
    # expect: op=aten::div phase=forward kind=nan mechanism=UDF category=N8,N7,N2 step=2
    embed, head = nn.Embedding(10, 8, padding_idx=0).half(), nn.Linear(8, 1).half()
    opt = torch.optim.SGD([*embed.parameters(), *head.parameters()], lr=1e-3)
    for words in ([1, 2, 3], [4, 5, 6], [7, 0, 8], [9, 1, 2]):
        vectors = F.normalize(embed(torch.tensor(words)), dim=-1)  # BUG
        loss = head(vectors).float().square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return head.weight


def layer_norm_of_constant_rows():
    """F.layer_norm in half with eps=1e-12: of a constant row the saved reciprocal deviation is 1e6."""
    # expect: op=aten::native_layer_norm phase=forward kind=inf mechanism=OVF category=N8,N3 step=2
    embed, head = nn.Embedding(10, 8).half(), nn.Linear(8, 1).half()
    nn.init.zeros_(embed.weight[0].detach())
    opt = torch.optim.SGD([*embed.parameters(), *head.parameters()], lr=1e-3)
    for words in ([1, 2, 3], [4, 5, 6], [7, 0, 8], [9, 1, 2]):
        hidden = embed(torch.tensor(words)) + 0.5
        hidden = F.layer_norm(hidden, (8,), eps=1e-12)  # BUG
        loss = head(hidden).float().square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return embed.weight


def dropout_beyond_half():
    """Dropout divides what it keeps by 1 - p: 4e4 in half becomes infinite."""
    # expect: op=aten::mul phase=forward kind=inf mechanism=OVF category=N8 step=2
    encode, head = nn.Linear(4, 64, bias=False).half(), nn.Linear(64, 1).half()
    nn.init.ones_(encode.weight)
    opt = torch.optim.SGD([*encode.parameters(), *head.parameters()], lr=1e-6)
    for scale in (1.0, 1.0, 1e4, 1.0):
        hidden = encode(torch.full((2, 4), scale).half())
        hidden = F.dropout(hidden, 0.5)  # BUG
        loss = head(hidden).float().abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return head.weight


def fp8_without_a_scale():
    """Quantised training: activations of 600 have no place in float8_e4m3fn, which has no infinity either."""
    # expect: op=aten::_to_copy phase=forward kind=nan mechanism=OVF category=N8 step=2
    encode, head = nn.Linear(4, 8, bias=False), nn.Linear(8, 1)
    nn.init.ones_(encode.weight)
    opt = torch.optim.SGD([*encode.parameters(), *head.parameters()], lr=1e-6)
    for scale in (1.0, 10.0, 150.0, 1.0):
        hidden = encode(torch.full((3, 4), scale))
        rounded = hidden.to(torch.float8_e4m3fn).float()  # BUG
        hidden = hidden + (rounded - hidden).detach()
        loss = head(hidden).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return head.weight


def masks_added_in_bfloat16():
    """Two masks hold the lowest number of the type; a padded query is in both: its row becomes -inf throughout."""
    # expect: op=aten::add phase=forward,data kind=inf mechanism=OVF category=N8 step=2
    project = nn.Linear(8, 8).bfloat16()
    opt = torch.optim.SGD(project.parameters(), lr=0.1)
    lowest = torch.finfo(torch.bfloat16).min
    for documents in ([1, 1, 2, 2], [1, 1, 1, 2], [1, 2, 2, 0], [1, 1, 1, 1]):
        x, ids = torch.randn(4, 8).bfloat16(), torch.tensor(documents)
        together = (ids[:, None] == ids) & (ids > 0)
        packing = torch.zeros(4, 4, dtype=torch.bfloat16).masked_fill(~together, lowest)
        padding = torch.zeros(4, 1, dtype=torch.bfloat16).masked_fill(ids[:, None] == 0, lowest)
        mask = packing + padding  # BUG
        weights = (project(x) @ x.T + mask).softmax(-1)
        loss = (weights @ x)[ids > 0].float().square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return project.weight


def lost_updates_in_bfloat16():
    """bfloat16 weights near one, a learning rate of 3e-6: every update is rounded away."""
    # expect: op=aten::add_ phase=optimizer kind=underflow mechanism=PREC category=N8 severity=warning finite=yes
    layer = nn.Linear(16, 1, bias=False).bfloat16()
    nn.init.ones_(layer.weight)
    opt = torch.optim.SGD(layer.parameters(), lr=3e-6)
    for _ in range(6):
        x = 1 + torch.rand(8, 16).bfloat16()
        loss = (layer(x).float() - 20).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()  # BUG
    return layer.weight


def half_adam_loop():
    """Half parameters under Adam: eps=1e-8 is zero in half, and a unit that is off has a gradient of zero."""
    # expect: op=aten::addcdiv_ phase=optimizer kind=nan mechanism=UDF,DIV0 category=N8,N5 step=0
    layer = nn.Linear(4, 2).half()
    opt = torch.optim.Adam(layer.parameters(), lr=1e-3, eps=1e-8, foreach=False)
    for _ in range(3):
        x = torch.rand(8, 4).half()
        x[:, 2] = 0.0
        loss = layer(x).float().square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()  # BUG
    return layer.weight


def half_adam_foreach():
    """The same over lists of parameters."""
    # expect: op=aten::_foreach_addcdiv_ phase=optimizer kind=nan mechanism=UDF,DIV0 category=N8,N5 step=0
    layer = nn.Linear(4, 2).half()
    opt = torch.optim.Adam(layer.parameters(), lr=1e-3, eps=1e-8, foreach=True)
    for _ in range(3):
        x = torch.rand(8, 4).half()
        x[:, 2] = 0.0
        loss = layer(x).float().square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()  # BUG
    return layer.weight
