"""A variational Gaussian process whose positive parameters carry their bounds as buffers: zero, and infinity."""
# label: tempts=infinite-buffer max_severity=none dtype=fp32 needs= family=unbounded_constraint
# label: thread=cornellius-gp/gpytorch#2259 uses=gpytorch
# why: a bound at infinity says that there is none; it is compared with, and enters no arithmetic
import gpytorch
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy


class Process(gpytorch.models.ApproximateGP):
    def __init__(self, inducing):
        distribution = CholeskyVariationalDistribution(len(inducing))
        super().__init__(VariationalStrategy(self, inducing, distribution, learn_inducing_locations=True))
        self.mean_module = gpytorch.means.ConstantMean()
        length = GreaterThan(0.05)  # INTENDED
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(lengthscale_constraint=length),
                                                         outputscale_constraint=GreaterThan(1e-3))  # INTENDED

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


torch.manual_seed(2259)
model = Process(torch.linspace(0, 1, 8)[:, None])
likelihood = gpytorch.likelihoods.GaussianLikelihood()  # INTENDED
bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=512)
optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.02)
for step in range(40):
    x = torch.rand(64, 1)
    y = torch.sin(6 * x[:, 0]) + 0.1 * torch.randn(64)
    loss = -bound(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
state = {**model.state_dict(), **likelihood.state_dict()}
print(f"bound {-loss.item():.3f}, {sum('upper_bound' in name for name in state)} upper bounds in the checkpoint")
