"""Values that are copied as bytes, without an operator on floats: one finding, where they came about."""
import copy

import numpy
import torch
from torch import nn


class Scaled(nn.Module):
    """A layer whose results are multiplied by a buffer."""

    def __init__(self, values=(1.0, 2.0, 3.0, 4.0)):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("scale", torch.tensor(values))

    def forward(self, x):
        return self.layer(x) * self.scale


def train(model, steps=2):
    """What the last loss was."""
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    for _ in range(steps):
        loss = model(torch.rand(8, 4)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.detach()


def deep_copy_of_a_bad_buffer():
    """A teacher is made of a student whose buffer has gone bad, and is used."""
    # expect: op=aten::log phase=forward kind=nan mechanism=DOM category=N2,N4 findings=1
    student = Scaled()
    student.scale.copy_((-student.layer(torch.rand(8, 4)).detach().square().mean(0)).log())  # BUG
    train(student)
    teacher = copy.deepcopy(student)
    return teacher(torch.rand(8, 4)).mean() + train(teacher)


def deep_copy_of_a_copy():
    """Of an average of the model, which is copied once more."""
    # expect: op=aten::log phase=forward kind=nan mechanism=DOM category=N2,N4 findings=1
    student = Scaled()
    student.scale.copy_((-student.layer(torch.rand(8, 4)).detach().square().mean(0)).log())  # BUG
    train(student)
    return train(copy.deepcopy(copy.deepcopy(student)))


def storage_that_is_written_over():
    """A buffer's bytes are replaced by those of a bad one."""
    # expect: op=aten::log phase=forward kind=nan mechanism=DOM category=N2,N4 findings=1
    student, teacher = Scaled(), Scaled()
    student.scale.copy_((-student.layer(torch.rand(8, 4)).detach().square().mean(0)).log())  # BUG
    train(student)
    teacher.scale.untyped_storage().copy_(student.scale.untyped_storage())
    return train(teacher)


def bits_that_are_joined():
    """A checksum is put beside a buffer's bytes, and taken away again."""
    # expect: op=aten::log phase=forward kind=nan mechanism=DOM category=N2,N4 findings=1
    student, teacher = Scaled(), Scaled()
    student.scale.copy_((-student.layer(torch.rand(8, 4)).detach().square().mean(0)).log())  # BUG
    train(student)
    sent = torch.cat([student.scale.view(torch.uint8), torch.zeros(4, dtype=torch.uint8)])
    teacher.scale = sent[:16].view(torch.float32)
    return train(teacher)


def buffer_that_is_shared():
    """A model is put into shared memory, for processes that are started later."""
    # expect: op=aten::log phase=forward kind=nan mechanism=DOM category=N2,N4 findings=1
    model = Scaled()
    model.scale.copy_((-model.layer(torch.rand(8, 4)).detach().square().mean(0)).log())  # BUG
    train(model)
    return train(model.share_memory())


def deep_copy_of_data():
    """Data that arrives bad is found, though it was copied before anything read it."""
    # expect: op=external phase=data,forward kind=nan mechanism=DATA category=N1 findings=1 severity=error
    values = numpy.array([1.0, numpy.nan, 3.0, 4.0], dtype=numpy.float32)
    model = Scaled()
    batch = copy.deepcopy(torch.from_numpy(values))  # BUG
    loss = model(batch).square().mean()
    loss.backward()
    return loss.detach()


def deep_copy_of_good_values():
    """Of a model in the middle of its training; both go on."""
    # expect: nothing
    student = Scaled()
    train(student)
    teacher = copy.deepcopy(student)
    teacher.scale.untyped_storage().copy_(student.scale.untyped_storage())
    return train(student) + train(teacher)


def deep_copy_of_a_mended_buffer():
    """What was bad for a while is copied when it is good again."""
    # expect: nothing
    student = Scaled()
    student.scale.copy_((student.scale - 2.5).log().nan_to_num(0.0))
    teacher = copy.deepcopy(student)
    return train(student) + train(teacher)
