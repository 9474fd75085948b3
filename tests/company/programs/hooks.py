"""What DeepSpeed and FSDP do with hooks: parameters are empty but for the time in which their module computes,
gradients lie in one flat buffer, the update is made in the backward pass, saved tensors are packed."""
import torch
from torch import nn

import small_training


class Partitioned:
    """The parameters of one module, kept in a flat buffer; gathered before its forward and backward pass."""

    def __init__(self, module):
        self.module, self.parameters = module, list(module.parameters(recurse=False))
        self.flat = torch.cat([parameter.detach().reshape(-1) for parameter in self.parameters])
        self.gradients, self.shapes = torch.zeros_like(self.flat), [p.shape for p in self.parameters]
        self.release()
        module.register_forward_pre_hook(lambda *_: self.gather())
        module.register_forward_hook(lambda *_: self.release())
        module.register_full_backward_pre_hook(lambda *_: self.gather())
        for parameter, part in zip(self.parameters, self.parts(self.gradients)):
            parameter.register_post_accumulate_grad_hook(lambda parameter, part=part: self.take(parameter, part))

    def parts(self, flat):
        return [part.view(shape) for part, shape in
                zip(flat.split([shape.numel() for shape in self.shapes]), self.shapes)]

    def gather(self):
        for parameter, part in zip(self.parameters, self.parts(self.flat)):
            parameter.data = part.clone()

    def release(self):
        for parameter in self.parameters:
            parameter.data = torch.empty(0)

    def take(self, parameter, part):
        """The gradient is reduced into the flat buffer, and the update made from there."""
        part.copy_(parameter.grad)
        parameter.grad = None
        number = [one is parameter for one in self.parameters].index(True)
        self.parts(self.flat)[number].sub_(part, alpha=0.01)
        parameter.data = torch.empty(0)


def pack(tensor):
    return tensor.detach().to(torch.float64)


def unpack(packed):
    return packed.to(torch.float32)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 1)

    def forward(self, x):
        return self.last(self.norm(self.first(x)).tanh())


torch.manual_seed(0)
model = Model()
partitioned = [Partitioned(module) for module in (model.first, model.norm, model.last)]
seen = []
model.last.register_full_backward_hook(lambda module, into, out: seen.append(out[0].norm().item()))
model.register_forward_hook(lambda module, args, out: out * 1.0)
for step in range(12):
    x = torch.rand(12, 8).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        loss = (model(x).squeeze(1).abs() + 0.1 - x.sum(1)).square().mean()
    loss.backward()
    print(step, loss.item())
small_training.state.show(model, *[part.flat for part in partitioned], torch.tensor(seen))
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    loss = (-model(torch.rand(12, 8)).abs() - 1).log().mean()  # BUG
loss.backward()
print("then", loss.item())
