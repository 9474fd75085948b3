// Ops whose outputs were not read when they were made, for a look back once something bad has shown.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "host/analyze/birth.h"
#include "host/core/adapter_abi.h"
#include "host/core/huge_array.h"
#include "host/session/forward_map.h"

namespace numsan {

/// One op, with its views copied. Storages are watched: nothing is kept alive, but no address is used anew.
struct LoggedOp {
    static constexpr int32_t kMaxInputs = 6;
    static constexpr int32_t kMaxOutputs = 4;
    static constexpr int16_t kMaxDims = 6;

    OpEvent event;        ///< points into this record
    OpContext context;    ///< without kin
    ForwardMap::Record made;  ///< what the forward map was told
    bool makes_node;
    uint64_t unread;      ///< bit i: output i was not read
    TensorView inputs[kMaxInputs];
    TensorView outputs[kMaxOutputs];
    int64_t dims[(kMaxInputs + kMaxOutputs) * 2 * kMaxDims];
    double scalars[4];
    char node[96];
    uint64_t bad;  ///< of a look back: bit i: output i is here and holds something that is not finite
};

/// A ring: what is not looked at for kOps ops is forgotten. [MT] under its own lock, which is taken before the
/// verdict's.
class OpLog {
  public:
    static constexpr size_t kOps = 4096;

    explicit OpLog(bool used) : ops_(used ? kOps : 1, HugeArray<LoggedOp>::Pages::Small) {}

    /// Before the first op is added.
    void use(const StorageApi& storages) { storages_ = &storages; }
    bool usable() const { return storages_ != nullptr; }

    /// False for an op with too many outputs: it was not kept.
    bool add(const OpEvent& event, const OpContext& context, const ForwardMap::Record& made, bool makes_node,
             uint64_t unread);

    /// Calls visit(ops), oldest first, and forgets them. Storages stay watched during the visit.
    template <class Visit>
    void take(Visit&& visit) {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::vector<LoggedOp*> ops;
        for (uint64_t i = begin_; i != end_; ++i) ops.push_back(&ops_[i % kOps]);
        visit(ops);
        for (; begin_ != end_; ++begin_) unwatch(ops_[begin_ % kOps]);
    }
    void clear() {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (; begin_ != end_; ++begin_) unwatch(ops_[begin_ % kOps]);
    }

    /// Fork: held over the fork in the parent.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

  private:
    void unwatch(const LoggedOp& op);

    const StorageApi* storages_ = nullptr;
    std::mutex mutex_;
    uint64_t begin_ = 0, end_ = 0;
    HugeArray<LoggedOp> ops_;
};

}  // namespace numsan
