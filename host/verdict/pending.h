// Escapes that wait: what the program does next decides whether they are findings.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "host/base/ids.h"
#include "host/cause/birth.h"
#include "host/track/op_context.h"

namespace numsan {

/// Why an escape waits: a row of pending.def.
enum class PendingReason : uint8_t {
#define NUMSAN_PENDING(reason, severity, step, end, meaning) reason,
#include "host/verdict/pending.def"
#undef NUMSAN_PENDING
};
enum class PendingFate : uint8_t { Report, Drop, Keep, Ask };

struct PendingPolicy {
    PendingReason reason;
    Severity severity;
    PendingFate at_step;
    PendingFate at_end;
};
inline constexpr PendingPolicy kPendingPolicies[] = {
#define NUMSAN_PENDING(reason, severity, step, end, meaning) \
    {PendingReason::reason, Severity::severity, PendingFate::step, PendingFate::end},
#include "host/verdict/pending.def"
#undef NUMSAN_PENDING
};

/// A birth that reached something, and what is known of that by now.
struct PendingEscape {
    BirthId birth = 0;
    EscapeInto into = EscapeInto::Output;
    const void* impl = nullptr;
    int64_t step = 0;
    OpSeq seq{};
    StackId stack = 0;
    const void* storage = nullptr;  ///< of a gradient: where it lies
    const void* leaf = nullptr;     ///< of a gradient: where its leaf lies, whatever tensor writes to it
    bool replaced = false;          ///< another gradient has reached the leaf since, and was not added to this one
    bool zeroed = false;            ///< an optimizer has been asked to let go of its gradients since: maybe of this one
    bool read = false;              ///< an optimizer has computed something of it
    const void* found = nullptr;    ///< of a scaler: where it noted that the gradient was bad
    const void* scaler = nullptr;   ///< of a scaler: where its scale lies, once that is known
    bool muted = false;             ///< it reached this as zeros, which its overflow became
    bool of_loss = false;           ///< of a check: backward() could have started from what it asked about
};

/// Not thread-safe: the verdict's lock protects it. Beyond kMost of a reason the oldest gradients stay; of the rest
/// those that came after the first quarter give way, so that both the first and the last are there.
class PendingStore {
  public:
    using List = std::vector<PendingEscape>;
    static constexpr size_t kMost = 1 << 12;

    /// False: there is no room.
    bool add(PendingReason reason, const PendingEscape& escape) {
        List& list = of(reason);
        if (list.size() >= kMost) {
            forgotten_ += reason == PendingReason::Gradient ? 1 : kMost / 4;
            if (reason == PendingReason::Gradient) return false;
            list.erase(list.begin() + kMost / 4, list.begin() + kMost / 2);
        }
        list.push_back(escape);
        return true;
    }

    /// Adds the escape of a birth, null for none. What the program wrote on purpose escapes into a loss only.
    void postpone(const Birth* birth, EscapeInto into, const void* impl, const OpContext& context,
                  PendingReason reason) {
        if (birth == nullptr || birth->scaler || birth->ignored || context.ignored) return;
        if (birth->intended && into != EscapeInto::Loss) return;
        add(reason, {.birth = birth->id,
                     .into = into,
                     .impl = impl,
                     .step = context.step,
                     .seq = context.seq,
                     .stack = context.stack,
                     .muted = reason == PendingReason::Muted});
    }

    /// Those that wait for one reason, oldest first.
    List& of(PendingReason reason) { return lists_[static_cast<size_t>(reason)]; }
    const List& of(PendingReason reason) const { return lists_[static_cast<size_t>(reason)]; }

    /// Takes out those of a reason that `which` holds of.
    template <class Which>
    List take_if(PendingReason reason, Which&& which) {
        List taken;
        std::erase_if(of(reason), [&](const PendingEscape& escape) {
            if (!which(escape)) return false;
            taken.push_back(escape);
            return true;
        });
        return taken;
    }
    List take(PendingReason reason) { return std::exchange(of(reason), {}); }

    /// Escapes of birth `from` are those of birth `to`.
    void replace(BirthId from, BirthId to) {
        for (List& list : lists_) {
            for (PendingEscape& escape : list) {
                if (escape.birth == from) escape.birth = to;
            }
        }
    }

    void clear() {
        for (List& list : lists_) list.clear();
    }

    /// How many found no room so far, or gave way.
    int64_t forgotten() const { return forgotten_; }

    void add_births(std::set<BirthId>& births) const {
        for (const List& list : lists_) {
            for (const PendingEscape& escape : list) births.insert(escape.birth);
        }
    }

  private:
    std::array<List, std::size(kPendingPolicies)> lists_;
    int64_t forgotten_ = 0;
};

}  // namespace numsan
