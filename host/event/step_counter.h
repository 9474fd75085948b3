// Counts finished optimizer steps: torch.optim's by its scopes, others by what a training loop does.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "host/base/adapter_abi.h"

namespace numsan {

/// Where no Optimizer.step scope was ever seen (torch::optim of LibTorch, a loop that updates by hand), a step is:
/// a backward pass, then a write into a parameter outside of every backward, then, on the thread that wrote, the first
/// op with gradients on that does not work on parameters' memory, gradients or their averages; or, on any thread, the
/// next backward. Gradients that are accumulated over several backward passes make one step. [MT]
class StepCounter {
  public:
    StepCounter() = default;
    StepCounter(const StepCounter&) = delete;
    StepCounter& operator=(const StepCounter&) = delete;

    int64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

    /// From here on only Optimizer.step scopes count.
    void count_scopes_only() noexcept { state_.store(State::Scopes, std::memory_order_relaxed); }
    void optimizer_begins() noexcept { count_scopes_only(); }
    void optimizer_ends(int rounds = 1) noexcept { count_.fetch_add(rounds, std::memory_order_relaxed); }

    /// An autograd node begins; `leaf` is the storage of the parameter whose gradient it has, or null.
    void node(const void* leaf) noexcept {
        if (leaf != nullptr) add_parameter(leaf);
        State was = state();
        if (was == State::Scopes || was == State::Backward) return;
        const bool changed = state_.compare_exchange_strong(was, State::Backward, std::memory_order_relaxed);
        if (changed && was == State::Updated) optimizer_ends();
    }

    /// Whether op() has anything to do: before an op is described, and after. One load on the path of every op.
    bool awaits_forward() const noexcept { return state() == State::Updated; }
    bool awaits_update() const noexcept { return state() == State::Backward; }

    /// An op that finished on `thread`, outside of autograd nodes; `on_state`: it works on a gradient or an average of
    /// them.
    /// True: it ends a step.
    bool forward(const OpEvent& event, const void* thread, bool on_state) noexcept {
        if (!event.grad_enabled || event.graph_task != -1 || writer_.load(std::memory_order_relaxed) != thread)
            return false;
        bool reads_parameter = false;
        for (int32_t i = 0; i < event.input_count; ++i) {
            reads_parameter = reads_parameter || is_parameter(event.inputs[i]);
            on_state = on_state || is_known(event.inputs[i].storage);  // parameter.data
        }
        if (on_state && !reads_parameter) return false;
        State was = State::Updated;
        if (!state_.compare_exchange_strong(was, State::Forward, std::memory_order_relaxed)) return false;
        optimizer_ends();
        return true;
    }

    /// An op that finished on `thread`, outside of autograd nodes: it may have written a parameter.
    void update(const OpEvent& event, const void* thread) noexcept {
        if (event.graph_task != -1) return;
        for (int32_t i = 0; i < event.output_count; ++i) {
            const TensorView& output = event.outputs[i];
            if ((output.flags & kWritten) == 0 || !(is_parameter(output) || is_known(output.storage))) continue;
            writer_.store(thread, std::memory_order_relaxed);
            State was = State::Backward;
            state_.compare_exchange_strong(was, State::Updated, std::memory_order_relaxed);
            return;
        }
    }

    /// The program ends: an update that nothing followed is a step, too.
    void finish() noexcept {
        State was = State::Updated;
        if (state_.compare_exchange_strong(was, State::Forward, std::memory_order_relaxed)) optimizer_ends();
    }

  private:
    enum class State : uint8_t { Forward, Backward, Updated, Scopes };

    static constexpr size_t kParameters = 1 << 13;
    static constexpr size_t kProbes = 8;

    State state() const noexcept { return state_.load(std::memory_order_relaxed); }

    static size_t home(const void* storage) noexcept {
        return (reinterpret_cast<uintptr_t>(storage) >> 4) * 0x9e3779b97f4a7c15ull >> 32;
    }
    bool is_known(const void* storage) const noexcept {
        for (size_t i = 0; i < kProbes; ++i) {
            const void* here = parameters_[(home(storage) + i) % kParameters].load(std::memory_order_relaxed);
            if (here == storage) return true;
            if (here == nullptr) return false;
        }
        return false;
    }
    void add_parameter(const void* storage) noexcept {
        if (state() == State::Scopes || is_known(storage)) return;
        for (size_t i = 0; i < kProbes; ++i) {
            const void* free = nullptr;
            std::atomic<const void*>& slot = parameters_[(home(storage) + i) % kParameters];
            if (slot.compare_exchange_strong(free, storage, std::memory_order_relaxed)) return;
        }
        // A program that makes models again and again fills the table with what is gone.
        const size_t given_up = (home(storage) >> 24) % kProbes;
        parameters_[(home(storage) + given_up) % kParameters].store(storage, std::memory_order_relaxed);
    }

    std::atomic<int64_t> count_{0};
    std::atomic<State> state_{State::Forward};
    std::atomic<const void*> writer_{nullptr};
    /// Storages of leaves that were handed a gradient: parameter.data is written without any sign that it is a
    /// parameter. One that finds no room takes another's place.
    std::array<std::atomic<const void*>, kParameters> parameters_{};
};

}  // namespace numsan
