#include "host/event/op_coverage.h"

#include <cstring>

namespace numsan {

void OpCoverage::add_unseen(const char* why) noexcept {
    for (size_t i = 0; i < kMaxReasons; ++i) {
        Unseen& entry = unseen_[i];
        const char* known = nullptr;
        const bool taken = entry.why.compare_exchange_strong(known, i + 1 < kMaxReasons ? why : "other");
        if (!taken && i + 1 < kMaxReasons && std::strcmp(known, why) != 0) continue;
        entry.ops.fetch_add(1, std::memory_order_relaxed);
        return;
    }
}

std::map<std::string, int64_t> OpCoverage::skipped() const {
    static constexpr const char* kKeys[kOpOutcomes] = {
#define NUMSAN_OP_OUTCOME(id, key) key,
#include "host/event/op_outcomes.def"
#undef NUMSAN_OP_OUTCOME
    };
    std::map<std::string, int64_t> reasons;
    for (size_t i = 0; i < kOpOutcomes; ++i) {
        const auto outcome = static_cast<OpOutcome>(i);
        if (outcome != OpOutcome::Scanned && outcome != OpOutcome::Unseen && of(outcome) > 0)
            reasons[kKeys[i]] += of(outcome);
    }
    for (const Unseen& entry : unseen_) {
        const char* why = entry.why.load(std::memory_order_acquire);
        const int64_t ops = entry.ops.load(std::memory_order_relaxed);
        if (why != nullptr && ops > 0) reasons[why] += ops;
    }
    return reasons;
}

}  // namespace numsan
