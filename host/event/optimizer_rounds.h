// Which optimizer steps belong to one step of the training loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/stacks/stack_source.h"

namespace numsan {

/// A loop may step several optimizers in each iteration. They make one round: it is over when the next to step, by what
/// followed last time, has stepped in it already. An optimizer is known by the parameters it writes, whose addresses
/// last; where all of them are new after a backward pass, by the line it steps from (a copy of the model for each
/// task), until the one that stepped there before is seen to go on. Where no write is seen (`parameter.data`), a
/// thread's steps from one line that have no backward pass between them are one, as many as there were last time. [MT]
class OptimizerRounds {
  public:
    /// One step in progress, kept by its thread.
    struct Step {
        int optimizer = -1;
        bool known = false;  ///< a parameter that was met before has shown which optimizer this is
        StackId stack = 0;
    };

    /// Autograd computes a gradient.
    void backward() noexcept { backward_.store(true, std::memory_order_relaxed); }

    /// The step writes a parameter.
    void wrote(Step& step, const void* parameter) {
        if (step.known) return;
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto met = owners_.find(parameter);
        if (met != owners_.end() && met->second != step.optimizer) {
            rename(step.optimizer, met->second);
            step.optimizer = met->second;
            step.known = true;
        } else if (met == owners_.end() && owners_.size() < kParameters) {
            if (step.optimizer < 0) step.optimizer = add();
            owners_.emplace(parameter, step.optimizer);
        }
    }

    /// The step is over. How many rounds are over by that: two where the round before turns out to have been shorter
    /// than expected.
    int ended(Step& step) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const bool unseen = step.optimizer < 0;
        const bool computed = backward_.exchange(false, std::memory_order_relaxed);
        const int now = name(step, computed);
        // An optimizer for each parameter. Another thread's step may have taken this one's backward pass for its own.
        const bool same_thread = std::exchange(thread_, std::this_thread::get_id()) == std::this_thread::get_id();
        if (!unseen || computed || !same_thread || now != last_)
            most_more_ = std::exchange(more_, 0);
        else if (++more_ <= most_more_)
            return 0;
        Optimizer& optimizer = optimizers_[static_cast<size_t>(now)];
        if (last_ >= 0) optimizers_[static_cast<size_t>(last_)].next = now;
        last_ = now;
        const bool first = !optimizer.stepped;
        optimizer.stepped = true;
        int closed = 0;
        if (optimizer.in_round) {
            ++closed;
            begin_round();
        } else if (first && any_closed_ && in_round_ == 0) {
            return 0;  // one more of the round that was taken to be over
        }
        optimizer.in_round = true;
        ++in_round_;
        const int next = optimizer.next < 0 ? now : optimizer.next;
        if (optimizers_[static_cast<size_t>(next)].in_round) {
            ++closed;
            begin_round();
        }
        any_closed_ = any_closed_ || closed > 0;
        return closed;
    }

    // Around a fork.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

  private:
    struct Optimizer {
        int next = -1;        ///< the one that stepped after it last time
        int stands_for = -1;  ///< another, whose place at its line it took
        bool named = false;   ///< a step with its parameters is over
        bool stepped = false;
        bool in_round = false;
    };

    static constexpr size_t kParameters = 1 << 16;  ///< the rest have no owner, those that are known suffice
    static constexpr size_t kOptimizers = 256;      ///< more are one

    int add() {
        if (optimizers_.size() < kOptimizers) optimizers_.emplace_back();
        return static_cast<int>(optimizers_.size()) - 1;
    }

    /// What was taken for a new optimizer is a known one.
    void rename(int from, int to) {
        if (from < 0 || optimizers_[static_cast<size_t>(from)].named) return;
        for (auto& owner : owners_) {
            if (owner.second == from) owner.second = to;
        }
        if (from + 1 == static_cast<int>(optimizers_.size())) optimizers_.pop_back();
    }

    int name(Step& step, bool computed) {
        // A new one that found no room: what is there may be of optimizers that are gone, and is learned again if not.
        const bool unknown = step.optimizer < 0 && owners_.size() >= kParameters;
        if (unknown) owners_.clear();
        const auto here = stacks_.find(step.stack);
        const bool met = here != stacks_.end();
        if (step.optimizer < 0) {
            step.optimizer = met ? here->second : add();
        } else if (!step.known && met && computed) {
            optimizers_[static_cast<size_t>(step.optimizer)].stands_for = here->second;
        } else if (step.known) {
            for (Optimizer& other : optimizers_) {
                if (other.stands_for == step.optimizer) other.stands_for = -1;
            }
        }
        if (!met && stacks_.size() >= kOptimizers) stacks_.clear();
        if (!met && !unknown) stacks_.emplace(step.stack, step.optimizer);
        optimizers_[static_cast<size_t>(step.optimizer)].named = true;
        const int stands_for = optimizers_[static_cast<size_t>(step.optimizer)].stands_for;
        return stands_for < 0 ? step.optimizer : stands_for;
    }

    void begin_round() {
        for (Optimizer& optimizer : optimizers_) optimizer.in_round = false;
        in_round_ = 0;
    }

    std::mutex mutex_;
    std::atomic<bool> backward_{false};
    std::vector<Optimizer> optimizers_;
    std::unordered_map<const void*, int> owners_;
    std::unordered_map<StackId, int> stacks_;
    int last_ = -1;
    int in_round_ = 0;
    bool any_closed_ = false;
    std::thread::id thread_;  ///< that stepped last
    int more_ = 0;            ///< further steps of it from this line since a backward pass, where no write is seen
    int most_more_ = 0;       ///< how many there were of them the last time
};

}  // namespace numsan
