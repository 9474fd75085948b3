// A LibTorch training loop without Python: Poisson regression whose rate becomes negative in the fourth batch.
#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <cstdio>

namespace {

torch::Tensor negative_log_likelihood(const torch::Tensor& rate, const torch::Tensor& counts) {
    const torch::Tensor log_rate = torch::log(rate);  // BUG
    return (rate - counts * log_rate).mean();
}

}  // namespace

int main(int argc, char**) {
    const bool healthy = argc > 1;  // any argument: the rate is kept positive
    torch::manual_seed(0);
    torch::nn::Linear model(3, 1);
    torch::nn::init::constant_(model->weight, 0.5);
    torch::nn::init::constant_(model->bias, 1.0);
    torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.01));
    for (int step = 0; step < 6; ++step) {
        torch::Tensor x = torch::rand({16, 3});
        if (step == 3) x[5].fill_(-40.0);
        torch::Tensor rate = model->forward(x).squeeze(1);
        if (healthy) rate = torch::softplus(rate) + 1e-6;
        const torch::Tensor counts = x.clamp_min(0).sum(1).round();
        const torch::Tensor loss = negative_log_likelihood(rate, counts);
        optimizer.zero_grad();
        loss.backward();
        optimizer.step();
        std::printf("%d %.4f\n", step, loss.item<double>());
    }
    return 0;
}
