// Births in the forked workers of a DataLoader, in memory that workers and parent share.
#pragma once

#include "host/base/atomic_record.h"
#include "host/birth/birth_exchange.h"
#include "host/finding/place_of.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// A table of notes that a fork hands on: made in the parent, written by its workers, read by the parent when a bad
/// batch arrives. A note's slot follows from what the tensor looks like, so the table holds the latest note about such
/// a tensor, or one that happened to want the same slot. No lock: a note may be lost, then the batch is reported where
/// it arrives. Workers that were spawned share no memory with their parent.
class WorkerBirths final : public BirthExchange {
  public:
    /// Without memory to share the table stays empty.
    WorkerBirths(const StackSource& stacks, PlaceFinder places) noexcept;
    ~WorkerBirths() override;
    WorkerBirths(const WorkerBirths&) = delete;
    WorkerBirths& operator=(const WorkerBirths&) = delete;

    /// In a forked child: from now on it leaves notes.
    void begin_child() noexcept;

    bool leaves() const noexcept override { return leaves_; }
    void leave(BirthNote note, const Birth& birth) noexcept override;
    bool find(BirthNote& note, StackId stack) const override;

  private:
    static constexpr size_t kSlots = 2048;
    using Slot = AtomicRecord<BirthNote>;

    Slot& slot(const BirthNote& note) const;
    void locate(const Birth& birth);

    const StackSource& stacks_;
    const PlaceFinder places_;
    Slot* slots_ = nullptr;  ///< shared; zero pages are unwritten slots
    bool leaves_ = false;
    int32_t pid_ = 0;
    BirthId located_ = 0;      ///< the birth that the following holds for
    bool in_worker_ = false;   ///< it was made inside a worker's loop
    std::optional<Place> at_;  ///< by this line of the program's own
};

}  // namespace numsan
