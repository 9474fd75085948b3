// Stacks of programs without Python: return addresses now, file:line when a finding asks for it.
#pragma once

#include <map>
#include <mutex>

#include "host/stacks/stack_source.h"
#include "host/stacks/stack_table.h"

namespace numsan {

/// resolve() reads debug information through libdw where it is
/// installed; without libdw or without debug information a frame has a function name only, and the file is the name of
/// the binary. Frames of torch, of CUDA, of numsan and of the C and C++ run-time libraries are left out.
class NativeStacks final : public StackSource {
  public:
    StackId capture() noexcept override;
    bool is_python() const noexcept override { return false; }
    bool in_module(StackId) const noexcept override { return false; }
    std::vector<SourceFrame> resolve(StackId id) const override;
    void keep(StackId id) const noexcept override { table_.keep(id); }
    void release(StackId id) const noexcept override { table_.release(id); }
    int64_t forgotten() const noexcept override { return table_.forgotten(); }
    LiveNames names(const TensorReader&) override { return {}; }
    void lock() override {
        mutex_.lock();
        table_.lock();
    }
    void unlock() override {
        table_.unlock();
        mutex_.unlock();
    }

    /// True when libdw was found: then frames have lines. Loads it on the first call.
    static bool has_lines();

  private:
    static constexpr size_t kMostKnown = 1 << 14;

    mutable StackTable table_;
    mutable std::mutex mutex_;
    mutable std::map<const void*, std::vector<SourceFrame>> known_;  ///< by return address; none means "left out"
};

}  // namespace numsan
