"""Forward operators that are given what they are not defined for."""
import numpy
import torch
import torch.nn.functional as F
from torch import nn


def acos_above_one():
    """Metric learning: a learned scale sits inside the arc cosine, and training makes it grow."""
    # expect: op=aten::acos phase=forward kind=nan mechanism=DOM category=N2,N4 step=1
    scale = nn.Parameter(torch.ones(()))
    opt = torch.optim.SGD([scale], lr=0.1)
    left = F.normalize(torch.tensor([[1.0, 0.5], [0.3, 1.0]]), dim=1)
    right = F.normalize(torch.tensor([[1.0, 0.1], [0.8, 1.0]]), dim=1)
    for _ in range(4):
        cosine = scale * (left * right).sum(1)
        angle = torch.acos(cosine)  # BUG
        loss = angle.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return scale


def asin_of_height_over_distance():
    """Radar: the height is predicted, the distance measured; one target is nearer than it is high."""
    # expect: op=aten::asin phase=forward kind=nan mechanism=DOM category=N2,N4,N1 step=2
    height = nn.Linear(1, 1)
    nn.init.ones_(height.weight)
    nn.init.zeros_(height.bias)
    opt = torch.optim.SGD(height.parameters(), lr=1e-3)
    for x in (0.5, 0.8, 3.0, 0.5):
        features = torch.full((4, 1), x)
        ratio = height(features) / 2.0
        elevation = torch.asin(ratio)  # BUG
        loss = (elevation - 0.3).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return height.weight


def batch_norm_of_one_row():
    """A functional batch norm: the running variance divides by n - 1, and the last batch is one row."""
    # expect: op=aten::native_batch_norm phase=forward kind=nan mechanism=DIV0 category=N7,N2,N1 step=2 into=buffer

    class Norm(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.register_buffer("running_mean", torch.zeros(width))
            self.register_buffer("running_var", torch.ones(width))

        def forward(self, x):
            mean, var = self.running_mean, self.running_var
            return torch.batch_norm(x, None, None, mean, var, self.training, 0.1, 1e-5, False)  # BUG

    model = nn.Sequential(nn.Linear(4, 3), Norm(3), nn.Linear(3, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for rows in (8, 8, 1):
        loss = model(torch.randn(rows, 4)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model[1].running_var


def cross_entropy_of_ignored_labels():
    """Packed fine-tuning: a batch that holds only prompt tokens has every label at -100."""
    # expect: op=aten::nll_loss_forward phase=forward kind=nan mechanism=DIV0 category=N4,N1 step=2
    model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    tokens, losses = torch.randint(0, 20, (4, 6)), []
    for step, row in enumerate(tokens):
        labels = row.roll(-1).clone()
        labels[:6 if step == 2 else 2] = -100
        loss = F.cross_entropy(model(row), labels)  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss)
    return losses


def ctc_without_alignment():
    """Speech: the third transcript has more symbols than its clip has frames."""
    # expect: op=aten::_ctc_loss phase=forward kind=inf mechanism=DATA category=N1,N4 step=2
    model = nn.Linear(5, 4)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for transcript in ([1, 2], [3, 1], [1, 1, 2, 2, 3], [2]):
        frames = torch.randn(6, 1, 5)
        scores = model(frames).log_softmax(-1)
        lengths = torch.tensor([6]), torch.tensor([len(transcript)])
        loss = F.ctc_loss(scores, torch.tensor([transcript]), *lengths)  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss, model.weight


def dropout_with_everything_dropped():
    """Inverted dropout by hand: the schedule of its rate ends at one."""
    # expect: op=aten::div phase=forward kind=nan mechanism=DIV0 category=N5,N7,N2,N4 step=2
    encode, head = nn.Linear(4, 8), nn.Linear(8, 1)
    opt = torch.optim.SGD([*encode.parameters(), *head.parameters()], lr=0.01)
    for p in (0.0, 0.5, 1.0, 1.0):
        keep = (torch.rand(6, 8) >= p).float()
        hidden = torch.relu(encode(torch.randn(6, 4)))
        hidden = hidden * keep / (1 - p)  # BUG
        loss = head(hidden).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return head.weight


def weight_norm_of_a_pruned_row():
    """Pruning sets a row of a weight-normalised layer to zero: it has no direction any more."""
    # expect: op=aten::_weight_norm_interface phase=forward kind=nan mechanism=DIV0 category=N7,N6,N2 step=2
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    opt = torch.optim.SGD(layer.parameters(), lr=0.01)
    for step in range(4):
        if step == 2:
            with torch.no_grad():
                layer.parametrizations.weight.original1[0] = 0.0
        loss = layer(torch.randn(8, 3)).square().mean()  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
    return layer.weight


def dora_of_a_zero_row():
    """DoRA by hand: the base weight has a zero row, and so has the low-rank product at the start."""
    # expect: op=aten::div phase=forward kind=nan mechanism=DIV0 category=N6,N7,N2,N4 step=0
    base = torch.randn(4, 6)
    base[2] = 0.0
    down, up = nn.Parameter(0.1 * torch.randn(2, 6)), nn.Parameter(torch.zeros(4, 2))
    magnitude = nn.Parameter(base.norm(dim=1, keepdim=True))
    opt = torch.optim.AdamW([down, up, magnitude], lr=1e-3)
    for _ in range(3):
        direction = base + up @ down
        weight = magnitude * direction / direction.norm(dim=1, keepdim=True)  # BUG
        loss = F.linear(torch.randn(8, 6), weight).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return up


def attention_over_unwritten_memory():
    """A memory bank is attended to: unused slots weigh nothing, and nothing times nan is nan."""
    # expect: op=aten::empty,aten::fill_ phase=forward kind=nan mechanism=UNINIT category=N9,N6 step=0
    torch.use_deterministic_algorithms(True)  # fresh memory is filled with nan
    query = nn.Linear(4, 4)
    opt = torch.optim.SGD(query.parameters(), lr=0.1)
    keys, values = torch.zeros(8, 4), torch.empty(8, 4)  # BUG
    for step in range(3):
        keys[step], values[step] = torch.randn(4), torch.randn(4)
        scores = query(torch.randn(5, 4)) @ keys.T
        unused = torch.arange(8) > step
        weights = scores.masked_fill(unused, float("-inf")).softmax(-1)
        loss = (weights @ values).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return query.weight


def attention_over_missing_rows():
    """Missing sensor rows are nan in the table; the key padding mask hides their scores alone."""
    # expect: op=external,aten::_to_copy phase=data kind=nan mechanism=DATA category=N1 step=2
    table = numpy.random.default_rng(0).normal(size=(4, 5, 8))
    table[2, 3:] = numpy.nan
    attend, head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 1)
    opt = torch.optim.SGD([*attend.parameters(), *head.parameters()], lr=0.1)
    for step in range(4):
        rows = torch.from_numpy(table[step:step + 1]).float()  # BUG
        missing = torch.zeros(1, 5, dtype=torch.bool)
        missing[:, 3:] = step == 2
        mixed, _ = attend(rows[:, :3], rows, rows, key_padding_mask=missing)
        loss = head(mixed).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return head.weight


def scaler_with_a_bad_forward():
    """A loss scaler skips step after step: the forward pass itself is bad, and no scale can help."""
    # expect: op=aten::log phase=forward kind=inf mechanism=DOM category=N4,N2,N1 step=1
    rate = nn.Sequential(nn.Linear(4, 1), nn.ReLU())
    nn.init.ones_(rate[0].weight)
    opt = torch.optim.SGD(rate.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    for x in (1.0, -1.0, -2.0, -3.0):
        expected = rate(torch.full((8, 4), x))
        loss = (expected - 3.0 * expected.log()).mean()  # BUG
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    return loss


def in_place_logarithm():
    """A teacher's probabilities become logarithms in place; one of them is zero."""
    # expect: op=aten::log_ phase=forward,data kind=inf mechanism=DOM category=N4,N2,N1 step=2
    teacher, student = nn.Linear(4, 3), nn.Linear(4, 3)
    opt = torch.optim.SGD(student.parameters(), lr=0.1)
    for scale in (1.0, 1.0, 1e4, 1.0):
        x = scale * torch.randn(6, 4)
        with torch.no_grad():
            target = teacher(x).softmax(-1)
            target.log_()  # BUG
        loss = (student(torch.randn(6, 4)).log_softmax(-1) - target).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return student.weight


def logarithm_into_a_buffer():
    """Log energies are written into a buffer that is made once; a silent frame has none."""
    # expect: op=aten::log phase=data kind=inf mechanism=DOM category=N1,N2 step=2
    model = nn.Linear(8, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    energies = torch.empty(4, 8)
    for step in range(4):
        sound = torch.rand(4, 8) + 0.1
        if step == 2:
            sound[1, :3] = 0.0
        torch.log(sound, out=energies)  # BUG
        loss = F.cross_entropy(model(energies.clone()), torch.tensor([0, 1, 0, 1]))
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.weight


def one_column_of_a_table():
    """One column is divided by its range in place; the loss reads it only when its feature is switched on."""
    # expect: op=aten::div_ phase=data kind=nan mechanism=DIV0 category=N1,N2 step=2
    model = nn.Linear(3, 1)
    table = torch.rand(10, 4)
    table[:, 3] = 2.0
    column = table[:, 3]
    column.sub_(column.min())
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        if step == 2:
            column.div_(column.max() - column.min())  # BUG
        features = table[:, :3] if step < 3 else table[:, 1:]
        loss = (model(features) - features.sum(1, keepdim=True)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.weight


def accuracy_of_no_samples():
    """Evaluation in inference mode: a class that nobody has makes the mean of its accuracy 0 / 0."""
    # expect: op=aten::div phase=forward,data kind=nan mechanism=DIV0 category=N1,N2,N4,N5,N7 severity=warning step=2
    model = nn.Linear(4, 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
    for _ in range(2):
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.inference_mode():
        right = (model(x).argmax(1) == y).float()
        total = torch.bincount(y, minlength=3).float()
        recall = torch.zeros(3).index_add_(0, y, right) / total  # BUG
        return torch.tensor(recall.mean().item())


def log_determinant_of_singular():
    """A row of the matrix is the sum of the others: its determinant is 0, and the logarithm of that has a pole."""
    # expect: op=aten::_linalg_slogdet phase=forward kind=inf mechanism=DOM category=N2,N4
    scale = nn.Parameter(torch.ones(3))
    opt = torch.optim.SGD([scale], lr=0.01)
    for i in range(4):
        base = torch.eye(3)
        if i == 2:
            base[2] = base[0] + base[1]
        loss = torch.logdet(base * scale)  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


def log_determinant_of_regular():
    """The same with a ridge."""
    # expect: nothing
    scale = nn.Parameter(torch.ones(3))
    base = torch.eye(3)
    base[2] = base[0] + base[1]
    loss = torch.logdet(base * scale + 0.1 * torch.eye(3))
    loss.backward()
    return scale.grad


def root_in_an_operator_of_its_own():
    """The program's own operator computes with numpy: the root of what a shifted batch makes negative."""
    # expect: op=clinic::root phase=forward kind=nan mechanism=OPAQUE category=N9,N2 step=2

    @torch.library.custom_op("clinic::root", mutates_args=())
    def root(x: torch.Tensor) -> torch.Tensor:
        result = torch.empty_like(x)
        with numpy.errstate(invalid="ignore"):
            numpy.sqrt(x.detach().numpy(), out=result.numpy())
        return result

    root.register_autograd(lambda ctx, slope: slope)
    model = nn.Linear(2, 2)
    nn.init.constant_(model.weight, 0.5)
    nn.init.zeros_(model.bias)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for i in range(4):
        x = torch.rand(4, 2) - (3 if i == 2 else -1)
        loss = root(model(x)).mean()  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    return losses


def operator_of_its_own_that_is_given_infinities():
    """The program's own operator centres what it is given; a logarithm of zero comes before it."""
    # expect: op=aten::log phase=forward kind=inf,nan mechanism=DOM category=N2,N4 step=1

    @torch.library.custom_op("clinic::centre", mutates_args=())
    def centre(x: torch.Tensor) -> torch.Tensor:
        values, result = x.detach().numpy(), torch.empty_like(x)
        with numpy.errstate(invalid="ignore"):
            numpy.subtract(values, values.max(axis=1, keepdims=True), out=result.numpy())
        return result

    centre.register_autograd(lambda ctx, slope: slope)
    scale = nn.Parameter(torch.ones(2))
    opt = torch.optim.SGD([scale], lr=0.01)
    losses = []
    for i in range(3):
        x = torch.tensor([[1.0, 2.0], [0.0, 0.0]]) if i == 1 else torch.ones(2, 2)
        loss = centre(torch.log(x * scale)).square().mean()  # BUG
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    return losses


def operator_of_its_own_that_is_healthy():
    """The same operators, of operands that they are defined for."""
    # expect: nothing

    @torch.library.custom_op("clinic::soft_root", mutates_args=())
    def soft_root(x: torch.Tensor) -> torch.Tensor:
        result = torch.empty_like(x)
        numpy.sqrt(numpy.abs(x.detach().numpy()) + 1e-3, out=result.numpy())
        return result

    soft_root.register_autograd(lambda ctx, slope: slope)
    model = nn.Linear(2, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(4):
        loss = soft_root(model(torch.randn(4, 2))).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model.weight
