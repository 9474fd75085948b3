#include "tests/gpu/probe/timing.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>

namespace numsan::gpu::probe {
namespace {

constexpr auto kLongestPause = std::chrono::milliseconds(50);
std::atomic<int> ran_out{0};

double quantile(const std::vector<double>& sorted, double share) {
    const double place = share * double(sorted.size() - 1);
    const auto low = static_cast<size_t>(place);
    const size_t high = std::min(low + 1, sorted.size() - 1);
    return sorted[low] + (sorted[high] - sorted[low]) * (place - double(low));
}

}  // namespace

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : quantile(values, 0.5);
}

Json spread(std::vector<double> values) {
    if (values.empty()) return nullptr;
    std::sort(values.begin(), values.end());
    return {{"median", quantile(values, 0.5)},
            {"low", quantile(values, 0.25)},
            {"high", quantile(values, 0.75)},
            {"turns", values.size()}};
}

std::string brief(const Json& number) {
    if (number.is_object() && number.contains("median")) return brief(number["median"]);
    if (!number.is_number()) return "?";
    char text[64];
    std::snprintf(text, sizeof text, "%.3g", number.get<double>());
    return text;
}

/// The driver's, and the host's until it has released it.
struct Pause::Shared {
    std::atomic<bool> released{false};
    std::atomic<int> owners{2};
    void let_go() {
        if (owners.fetch_sub(1) == 1) delete this;
    }
};

Pause::Pause(CUstream stream) : shared_(new Shared) {
    const auto wait = [](void* data) {
        auto* shared = static_cast<Shared*>(data);
        const Clock::time_point began = Clock::now();
        while (!shared->released.load(std::memory_order_acquire)) {
            if (Clock::now() - began > kLongestPause) {
                ++ran_out;
                break;
            }
            std::this_thread::yield();
        }
        shared->let_go();
    };
    const CUresult result = gpu().host_function(stream, wait, shared_);
    if (result != CUDA_SUCCESS) delete shared_;
    check("cuLaunchHostFunc", result);
}

void Pause::release() {
    if (shared_ == nullptr) return;
    shared_->released.store(true, std::memory_order_release);
    shared_->let_go();
    shared_ = nullptr;
}

int Pause::run_out() { return ran_out; }

}  // namespace numsan::gpu::probe
