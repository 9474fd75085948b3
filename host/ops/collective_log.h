// Collective operations of this process, by numbers that all ranks give them: no clock is needed to match them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"

namespace numsan {

/// All ranks of a group call its operations in one order, and two ranks what they send each other, so that the n-th is
/// the n-th in all of them. [MT] A lock of its own, under which nothing is called. Bounded.
class CollectiveLog {
  public:
    static constexpr size_t kKept = 1 << 14;   ///< operations of which it is known between which ops they began
    static constexpr size_t kPairs = 1 << 12;  ///< ways between two ranks: a program may give each message a tag

    /// An operation has begun as op `seq`. Its number, from 1; 0: it is not known. Throws std::bad_alloc.
    uint64_t begin(const OpEvent& event, OpSeq seq);

    struct Begun {
        const Communicator* group;
        uint64_t count;  ///< of operations of the whole group, sends and receives apart
    };
    /// All groups of which an operation has begun, in the order of their first.
    std::vector<Begun> all() const;
    /// The same when op `seq` began; none where that is too long ago.
    std::optional<std::vector<Begun>> before(OpSeq seq) const;

    /// Fork: held over the fork in the parent.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

  private:
    using Pair = std::tuple<size_t, bool, int32_t, int64_t>;  ///< group, whether it sends, the other rank, tag

    size_t place_of(const Communicator& group);

    mutable std::mutex mutex_;
    std::vector<Begun> groups_;
    std::map<std::string, size_t> place_by_name_;
    std::map<Pair, uint64_t> pairs_;
    std::deque<std::pair<OpSeq, size_t>> kept_;  ///< the last kKept, with the places of their groups
    OpSeq forgotten_ = OpSeq::None;              ///< the last that gave way
};

}  // namespace numsan
