#include "interpose/nvtx/kept_names.h"

#include <functional>

namespace numsan {

const KeptName* KeptNames::keep(const std::string& text) noexcept {
    const KeptName* made = nullptr;
    for (size_t at = std::hash<std::string>{}(text), looked = 0; looked < kSlots; ++at, ++looked) {
        std::atomic<const KeptName*>& slot = slots_[at % kSlots];
        const KeptName* there = slot.load(std::memory_order_acquire);
        if (there == nullptr) {
            if (made == nullptr && count_.fetch_add(1, std::memory_order_relaxed) >= kMost) break;
            try {
                if (made == nullptr) made = new KeptName{text};
            } catch (...) {
                break;
            }
            if (slot.compare_exchange_strong(there, made, std::memory_order_acq_rel)) return made;
        }
        if (there->text != text) continue;
        if (made != nullptr) count_.fetch_sub(1, std::memory_order_relaxed);  // another thread was first
        delete made;
        return there;
    }
    count_.fetch_sub(1, std::memory_order_relaxed);
    delete made;
    return nullptr;
}

}  // namespace numsan
