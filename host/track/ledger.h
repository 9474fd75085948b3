// Which storages hold bad values now, and which birth each kind goes back to. Also which storages nothing has written
// yet.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "host/base/adapter_abi.h"
#include "host/base/huge_array.h"
#include "host/base/ids.h"
#include "host/ops/collectives.h"
#include "host/stacks/range_path.h"
#include "host/stacks/stack_source.h"
#include "host/track/birth_id.h"

namespace numsan {

/// Not thread-safe but for may_hold(): the verdict's lock protects it. Bounded: of bad storages, of unwritten and of
/// received ones those that no op has used for longest give way. Most
/// bad storages of a run that has gone bad have died unseen: of more than kManyBad those that no op has used for
/// kStepsKept steps give way, too.
class Ledger {
  public:
    static constexpr size_t kMaxBad = 1 << 18;  ///< 40 MiB; a model of 50,000 parameters has 200,000 in a bad step
    static constexpr size_t kManyBad = 1 << 14;
    static constexpr int64_t kStepsKept = 1000;
    static constexpr size_t kMaxUnwritten = 8192;
    static constexpr size_t kMaxReceived = 4096;

    /// `most_bad`: kMaxBad but in tests.
    explicit Ledger(size_t most_bad = kMaxBad) : most_bad_(most_bad) {}

    struct Entry {
        const void* data = nullptr;
        int64_t bytes = 0;
        int64_t since = 0;                ///< the step in which the storage came to hold one of its births
        BirthId birth[3] = {0, 0, 0};     ///< by kind: NaN, +inf, -inf
        BirthId muted = 0;                ///< zeros that an overflow turned into
        BirthId flushed = 0;              ///< zeros that values too small for the type turned into
        uint64_t used = 0;                ///< when find() or set() had it last, for the ledger itself
        int64_t step_used = 0;            ///< the same in steps
        const void* copied_to = nullptr;  ///< memory that holds a copy of all bytes, made since the births were set
        KindSet unsure = 0;  ///< kinds of `birth` that may be gone: they were not read since an op may have cured them

        BirthId& of(Kind kind) { return birth[kind == kNaN ? 0 : kind == kPosInf ? 1 : 2]; }
        BirthId of(Kind kind) const { return birth[kind == kNaN ? 0 : kind == kPosInf ? 1 : 2]; }
        bool finite() const { return birth[0] == 0 && birth[1] == 0 && birth[2] == 0; }
        bool empty() const { return finite() && muted == 0 && flushed == 0; }
        bool is_sure_of(Kind kind) const { return of(kind) != 0 && (unsure & kind) == 0; }
        /// Something is in it that is not finite, as far as ops show.
        bool is_sure() const { return is_sure_of(kNaN) || is_sure_of(kPosInf) || is_sure_of(kNegInf); }
    };
    struct Unwritten {
        const void* data = nullptr;
        StackId stack = 0;
        OpSeq seq{};
        uint64_t mark = 0;    ///< number of the marking: an address is marked anew each time it is allocated
        int64_t bytes = 0;    ///< size of the storage
        int64_t missing = 0;  ///< bytes that no op has written yet, if no two wrote the same
    };

    /// [MT] False means that may_hold() is, of every storage.
    bool may_hold_any() const noexcept { return present_.load(std::memory_order_relaxed) != 0; }
    /// [MT] False means that the storage is neither bad nor unwritten; true means look closer. Two loads where few
    /// storages are, three in a run that has gone bad.
    bool may_hold(const void* storage) const noexcept {
        return presence_[slot(storage)].load(std::memory_order_relaxed) != 0 &&
               wide_[wide_slot(storage)].load(std::memory_order_relaxed) != 0;
    }

    /// The run is in this step from now on.
    void begin_step(int64_t step) { step_ = step; }

    /// The storage's bad kinds, or null. An entry of a storage that died and whose address lives on is dropped here;
    /// one that has moved to its copy's memory, as share_memory_() makes it, goes on.
    Entry* find(const TensorView& tensor);
    /// `since` stays what it was while one of the births does.
    void set(const TensorView& tensor, const Entry& entry);
    void clear(const TensorView& tensor);
    /// What was known as birth `from` is birth `to`, in every storage.
    void replace(BirthId from, BirthId to) {
        for (auto& [storage, entry] : bad_) std::replace(std::begin(entry.birth), std::end(entry.birth), from, to);
    }

    /// What a collective will have written: the value comes from another process, whenever that happens.
    struct Received {
        const void* data = nullptr;
        const OpInfo* op = nullptr;
        StackId stack = 0;
        OpSeq seq{};
        int64_t step = 0;
        double sent = 0;    ///< largest magnitude that this process put into a sum, else 0
        int64_t from = -1;  ///< the rank that sent it, within its group; -1: all of them, or it is not known
        int64_t share = 0;  ///< elements of each rank, one after another; 0: they are not
        const Communicator* group = nullptr;  ///< null: not known
        uint64_t number = 0;                  ///< see CollectiveLog
        CollectiveRoute route{};
        RangePath ranges{};  ///< that the collective ran inside of
        Entry bad{};         ///< what was bad in what this process put in
    };
    void mark_received(const TensorView& tensor, const Received& received);
    const Received* received(const TensorView& tensor) const;

    /// All that is known of a storage.
    struct Contents {
        Entry births;
        Unwritten unwritten{};  ///< `mark` 0: it is written
        Received received{};    ///< `op` null: no collective wrote it
    };
    Contents contents_of(const TensorView& tensor) const;
    /// The same is known of this storage from now on, in place of what was. An unwritten one does not give way to
    /// others: the caller soon adopts empty contents.
    void adopt(const TensorView& tensor, const Contents& contents);

    void mark_unwritten(const TensorView& tensor, StackId stack, OpSeq seq);
    const Unwritten* unwritten(const TensorView& tensor) const;
    /// Memory stays unwritten until ops have written as many bytes as it has.
    void mark_written(const TensorView& tensor);

    const std::unordered_map<const void*, Entry>& entries() const { return bad_; }

    /// Bad storages that gave way so far.
    int64_t forgotten() const { return forgotten_; }

  private:
    void make_room();
    void note_use(Entry& entry) {
        entry.used = ++uses_;
        entry.step_used = step_;
    }

    static constexpr size_t kSlots = 4096;
    static constexpr int kWideBits = 18;
    static size_t slot(const void* storage) {
        const auto bits = reinterpret_cast<uintptr_t>(storage);
        return ((bits >> 4) ^ (bits >> 16)) % kSlots;
    }
    static size_t wide_slot(const void* storage) {
        constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
        return reinterpret_cast<uintptr_t>(storage) * kGolden >> (64 - kWideBits);
    }
    void add_presence(const void* storage) {
        wide_[wide_slot(storage)].fetch_add(1, std::memory_order_relaxed);
        presence_[slot(storage)].fetch_add(1, std::memory_order_relaxed);
        present_.fetch_add(1, std::memory_order_relaxed);
    }
    void drop_presence(const void* storage) {
        presence_[slot(storage)].fetch_sub(1, std::memory_order_relaxed);
        wide_[wide_slot(storage)].fetch_sub(1, std::memory_order_relaxed);
        present_.fetch_sub(1, std::memory_order_relaxed);
    }

    const size_t most_bad_;
    std::unordered_map<const void*, Entry> bad_;
    size_t room_ = std::min(most_bad_, kManyBad);  ///< how many bad storages may be kept before some give way
    uint64_t uses_ = 0;
    int64_t step_ = 0;
    int64_t forgotten_ = 0;
    std::unordered_map<const void*, Unwritten> unwritten_;
    std::unordered_map<const void*, Received> received_;
    std::deque<std::pair<const void*, uint64_t>> unwritten_order_;  ///< storage and marking, oldest first
    uint64_t marks_ = 0;
    std::atomic<uint32_t> present_{0};             ///< sum of presence_
    std::atomic<uint32_t> presence_[kSlots] = {};  ///< stays in a core's cache
    /// The same with slots for the storages of a model that is bad all over: ten thousand of them fill presence_.
    HugeArray<std::atomic<uint32_t>> wide_{size_t(1) << kWideBits, HugeArray<std::atomic<uint32_t>>::Pages::Small};
};

}  // namespace numsan
