// Births that reach something that matters: which are reported at once, which wait, and what a report says of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <unordered_set>

#include "host/base/ids.h"
#include "host/birth/birth_store.h"
#include "host/ops/collective_log.h"
#include "host/track/lineage.h"
#include "host/track/stack_facts.h"
#include "host/verdict/outcome.h"
#include "host/verdict/pending.h"

namespace numsan {

/// Not thread-safe but for reported_any(): the verdict's lock protects it.
class Escapes {
  public:
    /// All outlive this.
    Escapes(const StackFacts& stacks, const Lineage& lineage, BirthStore& births, PendingStore& pending)
        : stacks_(stacks), lineage_(lineage), births_(births), pending_(pending) {}

    /// What knows the collectives of this process; before the first escape. It outlives this.
    void use(const CollectiveLog& collectives) { collectives_ = &collectives; }

    /// Steps of magnitude history that a finding has at most; before the first escape.
    void set_history(size_t steps) { history_ = steps; }

    /// The births have reached `into`: reports them. What the program wrote on purpose escapes into a loss only.
    void escape(const BirthKinds& kinds, EscapeInto into, const void* impl, const OpContext& context, Severity severity,
                Outcome& outcome);
    void escape(Birth& birth, EscapeInto into, const void* impl, const OpContext& context, Severity severity,
                Outcome& outcome);
    /// The births go to other ranks: those that are reported are said to have done so, the others once they are.
    void send(const BirthKinds& kinds, const OpEvent& event, const OpContext& context, Outcome& outcome);
    /// As escape(), but what the program does next decides.
    void postpone(BirthId id, EscapeInto into, const void* impl, const OpContext& context, PendingReason reason);
    void postpone(const BirthKinds& kinds, EscapeInto into, const void* impl, const OpContext& context,
                  PendingReason reason);

    /// The escape is that of the birth. By value: `escape` may be in a list that is cleared.
    void report(Birth& birth, PendingEscape escape, Severity severity, Outcome& outcome);
    /// A birth is about to escape. If it is pending in gradients, the first of them was the first thing that mattered.
    void report_gradient_of(Birth& birth, Severity severity, Outcome& outcome);
    /// Reports those of them that no loss scaler has caught.
    void report_all(const PendingStore::List& escapes, Severity severity, Outcome& outcome);
    /// A reported birth has reached a further tensor.
    void contaminate(const Birth& birth, EscapeInto into, const void* impl, int64_t step, Outcome& outcome);

    /// What makes two births the same to a reader, and whether one there was reported, as far as is remembered.
    std::string place_of(const Birth& birth) const;
    bool has_reported(const std::string& place) const { return reported_places_.count(place) != 0; }
    /// Reports `times` births at a place of which this is the first, and which have escaped nowhere.
    void report_absorbed(const Birth& birth, std::string place, int64_t times, Outcome& outcome) const;
    /// A birth as it is reported later: with the magnitudes before it.
    Birth with_history(const Birth& birth) const;

    /// Whether that birth is reported and the tensor among those that it reached, or no more of them are kept: then
    /// nothing that it reaches there can matter.
    bool has_named(BirthId id, EscapeInto into, const void* impl) const {
        const Birth* birth = births_.find(id);
        return birth != nullptr && birth->escaped &&
               (contaminated_.size() >= PendingStore::kMost || contaminated_.count({id, into, impl}) != 0);
    }

    /// backward() starts with op `seq`; the last op before it that read a parameter was `parameter_read`.
    void loss_begins(OpSeq seq, OpSeq parameter_read) {
        loss_seq_ = seq;
        loss_parameter_read_ = parameter_read;
    }
    /// The program has a loss scaler.
    void see_scaler() { scaler_seen_ = true; }
    bool scaler_seen() const { return scaler_seen_; }

    int64_t escaped() const { return escaped_; }        ///< births, without intended ones
    int64_t bad_places() const { return bad_places_; }  ///< reported first here, not finite
    int64_t forgotten() const { return forgotten_; }    ///< places whose next finding counts as a first one
    bool reported_any() const noexcept { return reported_any_.load(std::memory_order_relaxed); }

  private:
    static constexpr size_t kMostPlaces = 1 << 12;
    static constexpr int kMostChains = 64;    ///< places whose values' way is looked up
    static constexpr int kMostRepeats = 256;  ///< births before one that are looked at

    bool is_new(const std::string& place);
    BirthId repeated_by(const Birth& birth) const;
    std::optional<std::vector<CollectiveLog::Begun>> begun_before(OpSeq seq) const;

    const StackFacts& stacks_;
    const Lineage& lineage_;
    BirthStore& births_;
    PendingStore& pending_;
    const CollectiveLog* collectives_ = nullptr;
    size_t history_ = 32;
    /// A birth has reached this tensor.
    struct Reach {
        BirthId birth;
        EscapeInto into;
        const void* impl;

        bool operator==(const Reach&) const = default;
        struct Hash {
            size_t operator()(const Reach& reach) const noexcept {
                return (reinterpret_cast<uintptr_t>(reach.impl) >> 4) ^ (size_t(reach.birth) << 8) ^ size_t(reach.into);
            }
        };
    };
    std::unordered_set<Reach, Reach::Hash> contaminated_;
    std::atomic<bool> reported_any_{false};
    std::set<std::string> reported_places_;
    std::deque<std::string> places_in_order_;  ///< the same, oldest first: beyond kMostPlaces they give way
    int chains_ = 0;
    int64_t forgotten_ = 0;
    OpSeq loss_parameter_read_ =
        OpSeq::None;  ///< last forward op that read a parameter before the last backward() began
    OpSeq loss_seq_ = OpSeq::None;
    int64_t escaped_ = 0;
    int64_t bad_places_ = 0;
    bool scaler_seen_ = false;
};

}  // namespace numsan
