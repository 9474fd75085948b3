"""A Gaussian process with repeated inputs: a factorisation fails, and the next has jitter on the diagonal."""
# label: tempts=failed-factorisation max_severity=none dtype=fp32 needs= family=cholesky_jitter
# label: thread=facebook/Ax#311 uses=gpytorch
# why: the warning says that the matrix was made positive definite before it was used, says the maintainer; where no
# why: error follows, the matter is settled
import warnings

import gpytorch
import torch
from gpytorch.constraints import GreaterThan

warnings.filterwarnings("ignore")


class Surrogate(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


torch.manual_seed(311)
x = torch.linspace(0, 1, 12).repeat(3)[:, None]  # each setting was tried three times
y = torch.sin(6 * x[:, 0])
likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=GreaterThan(1e-9))
likelihood.noise = 1e-8
likelihood.raw_noise.requires_grad_(False)
model = Surrogate(x, y, likelihood)
evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.02)
for step in range(20):
    loss = -evidence(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"negative evidence {loss.item():.3f}, length {model.covar_module.base_kernel.lengthscale.item():.3f}")
