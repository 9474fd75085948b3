// Which ops of a backward pass belong to a part of the forward pass that is a loss, and how long they take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "host/stacks/stack_source.h"

namespace numsan {

/// Of one thread: spans of autograd nodes, by number, that its ops made in this step. Constant memory.
class BackwardCosts {
  public:
    struct Cost {
        StackId stack = 0;
        int64_t ns = 0;
    };

    /// What the backward pass of these nodes takes in this step is a cost of the place, too. Of one more than there is
    /// room for the oldest is forgotten.
    void add(uint64_t first, uint64_t last, StackId stack, int64_t step) noexcept {
        if (first <= last) spans_[count_++ % spans_.size()] = {first, last, stack, step};
    }

    /// A node begins to run.
    void node(uint64_t number) noexcept { node_ = number; }
    /// The session has heard of an op.
    void heard(int64_t now) noexcept { heard_ = now; }

    /// An op of the node, with what lies between it and the op before, where that was of the same span. ns 0: it is of
    /// none.
    Cost op(int64_t step, int64_t began, int64_t ended) noexcept {
        const Span* before = before_;
        before_ = nullptr;
        for (const Span& span : spans_) {
            if (span.step == step && span.first <= node_ && node_ <= span.last) before_ = &span;
        }
        if (before_ == nullptr) return {};
        return {before_->stack, ended - (before_ == before && heard_ > 0 ? heard_ : began)};
    }

    void end_step() noexcept {
        before_ = nullptr;
        heard_ = 0;
    }

  private:
    struct Span {
        uint64_t first = 1, last = 0;
        StackId stack = 0;
        int64_t step = -1;
    };

    std::array<Span, 64> spans_{};
    size_t count_ = 0;
    uint64_t node_ = ~uint64_t(0);
    int64_t heard_ = 0;
    const Span* before_ = nullptr;  ///< of the op before
};

}  // namespace numsan
