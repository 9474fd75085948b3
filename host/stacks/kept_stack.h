// A stack that its source does not forget while this lives.
#pragma once

#include <utility>

#include "host/stacks/stack_source.h"

namespace numsan {

/// Behaves like the id. Without a source it is no more than that.
class KeptStack {
  public:
    KeptStack() = default;
    /// `source` outlives this.
    KeptStack(StackId id, const StackSource* source = nullptr) noexcept : id_(id), source_(source) { keep(); }
    KeptStack(const KeptStack& other) noexcept : KeptStack(other.id_, other.source_) {}
    KeptStack(KeptStack&& other) noexcept : id_(std::exchange(other.id_, 0)), source_(other.source_) {}
    ~KeptStack() { release(); }

    KeptStack& operator=(KeptStack other) noexcept {
        std::swap(id_, other.id_);
        std::swap(source_, other.source_);
        return *this;
    }
    /// Another stack of the same source.
    KeptStack& operator=(StackId id) noexcept { return *this = KeptStack(id, source_); }

    operator StackId() const noexcept { return id_; }

  private:
    void keep() const noexcept {
        if (source_ != nullptr && id_ != 0) source_->keep(id_);
    }
    void release() const noexcept {
        if (source_ != nullptr && id_ != 0) source_->release(id_);
    }

    StackId id_ = 0;
    const StackSource* source_ = nullptr;
};

}  // namespace numsan
