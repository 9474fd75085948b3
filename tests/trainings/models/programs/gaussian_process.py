"""Gaussian processes fit logarithms of what was measured: by Cholesky, by conjugate gradients, by inducing points.

The bug: one late measurement is negative.
"""
import gpytorch
import torch
from loop import arguments, show

args = arguments(10)
places = torch.linspace(0, 1, 24)


class Exact(gpytorch.models.ExactGP):
    def __init__(self, likelihood):
        super().__init__(places, torch.zeros(24), likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel() + gpytorch.kernels.PeriodicKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self):
        inducing = torch.linspace(0, 1, 6)
        super().__init__(gpytorch.variational.VariationalStrategy(
            self, inducing, gpytorch.variational.CholeskyVariationalDistribution(6)))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def measured(step):
    """Logarithms of noisy values of a curve."""
    values = (torch.sin(places * 12) + 1.5) * (1 + 0.05 * torch.randn(24))
    if step == args.bug_step:
        values[7] = -0.1
    return values.log()  # BUG


likelihood, other = gpytorch.likelihoods.GaussianLikelihood(), gpytorch.likelihoods.GaussianLikelihood()
exact, sparse = Exact(likelihood), Sparse()
gain = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, exact)
bound = gpytorch.mlls.VariationalELBO(other, sparse, num_data=24)
optimizer = torch.optim.Adam([*exact.parameters(), *sparse.parameters(), *other.parameters()], lr=0.03)
for step in range(args.steps):
    targets = measured(step)
    optimizer.zero_grad()
    if step % 3 == 2:
        chosen = torch.randperm(24)[:8]
        loss = -bound(sparse(places[chosen]), targets[chosen])
        loss.backward()
    else:
        exact.set_train_data(targets=targets, strict=False)
        with gpytorch.settings.max_cholesky_size(800 if step % 3 == 0 else 0):
            loss = -gain(exact(places), targets)
            loss.backward()
    optimizer.step()
    if step % 80 == 79:
        for module in (exact, likelihood, sparse, other):
            module.eval()
        with torch.no_grad(), gpytorch.settings.fast_pred_var():
            predicted = likelihood(exact(torch.linspace(0, 1.2, 9)))
            print("variance", predicted.variance.sum().item().hex(), other(sparse(places)).mean.sum().item().hex())
        for module in (exact, likelihood, sparse, other):
            module.train()
show(loss, exact, sparse, other)
