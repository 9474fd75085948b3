#include "host/session/torch_frames.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/finding/place_of.h"
#include "host/session/check_flow.h"

namespace numsan {
namespace {

bool ends_with(const std::string& text, std::string_view end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Functions are compared without the class they belong to: some interpreters name it, some do not.
bool is(const SourceFrame& frame, std::string_view function, std::string_view file) {
    if (frame.native || !ends_with(frame.file, file)) return false;
    return function.empty() || frame.function == function || ends_with(frame.function, "." + std::string(function));
}

/// The frame that called an operator which a tensor subclass answers, however its answer calls it once more.
const SourceFrame& caller(const std::vector<SourceFrame>& frames) {
    for (size_t i = frames.size() - 1; i > 0; --i) {
        if (is(frames[i - 1], "__torch_dispatch__", "")) return frames[i];
    }
    return frames.front();
}

}  // namespace

bool TorchFrames::is_loss(StackId stack) const {
    if (stack == 0) return true;
    const std::vector<SourceFrame> frames = stacks_.resolve(stack);
    return frames.empty() || frames.front().native || is(caller(frames), "_make_grads", "torch/autograd/__init__.py");
}

bool TorchFrames::is_scaler(StackId stack) const {
    const std::vector<SourceFrame> frames = stacks_.resolve(stack);
    return !frames.empty() && is(frames.front(), "", "torch/amp/grad_scaler.py");
}

bool TorchFrames::is_loading(StackId stack) const {
    const std::vector<SourceFrame> frames = stacks_.resolve(stack);
    return std::any_of(frames.begin(), frames.end(), [](const SourceFrame& frame) {
        return is(frame, "load_state_dict", "torch/nn/modules/module.py") ||
               is(frame, "load_state_dict", "torch/optim/optimizer.py");
    });
}

bool TorchFrames::in_function(StackId stack) const {
    const std::vector<SourceFrame> frames = stacks_.resolve(stack);
    return std::any_of(frames.begin(), frames.end(),
                       [](const SourceFrame& frame) { return is(frame, "apply", "torch/autograd/function.py"); });
}

bool TorchFrames::in_generated(StackId stack) const {
    const std::vector<SourceFrame> frames = stacks_.resolve(stack);
    return std::any_of(frames.begin(), frames.end(), [](const SourceFrame& frame) { return is_generated(frame.file); });
}

bool TorchFrames::in_replay(StackId stack) const {
    const std::vector<SourceFrame> frames = stacks_.resolve(stack);
    return std::any_of(frames.begin(), frames.end(),
                       [](const SourceFrame& frame) { return is_region_frame(frame, "numsan_runs_region"); });
}

bool TorchFrames::in_same_region(StackId one, StackId other) const {
    const std::vector<SourceFrame> first = stacks_.resolve(one), second = stacks_.resolve(other);
    const auto calls = [](const SourceFrame& frame) {
        return is_region_frame(frame, "numsan_region") || is_region_frame(frame, "numsan_backward");
    };
    const auto same = [](const SourceFrame& a, const SourceFrame& b) {
        return a.line == b.line && a.file == b.file && a.function == b.function;
    };
    auto mine = std::find_if(first.begin(), first.end(), calls);
    auto its = std::find_if(second.begin(), second.end(), calls);
    if (mine == first.end() || its == second.end()) return false;
    return std::equal(++mine, first.end(), ++its, second.end(), same);  // they stand at lines of their own in the call
}

bool TorchFrames::in_package(StackId stack) const {
    const std::vector<SourceFrame> frames = stacks_.resolve(stack);
    return std::any_of(frames.begin(), frames.end(),
                       [](const SourceFrame& frame) { return is_region_frame(frame, "numsan_package"); });
}

uint64_t TorchFrames::place(StackId stack) const {
    uint64_t hash = 14695981039346656037ull;  // FNV-1a, 64 bit
    const auto add = [&](std::string_view text) {
        for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
        hash = (hash ^ 0xff) * 1099511628211ull;
    };
    for (const SourceFrame& frame : stacks_.resolve(stack)) {
        add(frame.file);
        add(frame.function);
        hash = (hash ^ static_cast<uint64_t>(frame.line)) * 1099511628211ull;
    }
    return hash;
}

AfterCheck TorchFrames::after_check(StackId check, StackId next) const {
    if (!stacks_.is_python()) return AfterCheck::WentOn;
    std::unique_ptr<PythonSources> sources(sources_.exchange(nullptr));
    if (sources == nullptr) sources = std::make_unique<PythonSources>(began_);
    const AfterCheck shown = numsan::after_check(stacks_.resolve(check), stacks_.resolve(next), *sources);
    delete sources_.exchange(sources.release());
    return shown;
}

size_t TorchFrames::worker_loop(const std::vector<SourceFrame>& stack) {
    const auto loop = std::find_if(stack.begin(), stack.end(), [](const SourceFrame& frame) {
        return is(frame, "_worker_loop", "torch/utils/data/_utils/worker.py");
    });
    return static_cast<size_t>(loop - stack.begin());
}

bool TorchFrames::arrives(const std::vector<SourceFrame>& stack) {
    return std::any_of(stack.begin(), stack.end(), [](const SourceFrame& frame) {
        return is(frame, "rebuild_tensor", "torch/multiprocessing/reductions.py");
    });
}

}  // namespace numsan
