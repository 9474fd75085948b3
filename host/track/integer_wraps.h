// Integer results that are not what was to be stored: that did not fit their type and wrapped around, or fractions of
// which a cast left zero.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/atomic_record.h"
#include "host/base/ids.h"

namespace numsan {

/// [MT] A memory of recent ones, so that a bad value that such an integer led to can be traced to it. An op is looked
/// at only if its result is an integer and its type may be too narrow. It may forget, it never invents: what is not
/// proven is not kept.
class IntegerWraps {
  public:
    enum Known : uint64_t { kNothing, kSign, kExact, kCut };
    /// One element. kExact: `exact` is what it should have been; kSign: its sign is known to be wrong, no more; kCut:
    /// `exact` is a fraction, and was to be an integer.
    struct Element {
        double exact;
        int64_t stored;
        uint64_t known;  ///< of Known
    };
    /// What an op stored: one element of each sign. All words, for AtomicRecord.
    struct Wrap {
        const void* storage = nullptr;
        const OpInfo* op = nullptr;
        OpSeq seq = OpSeq::None;
        uint64_t type = 0;  ///< IntegerType
        Element negative{};
        Element zero{};
        Element positive{};
        double least = 0;  ///< of the operands of a sum or product, where only the sign is known
        double most = 0;
    };

    /// Whether look() has anything to look at: asked for every op.
    static bool concerns(const OpEvent& event) noexcept {
        return event.op->integer_op != IntegerOp::None && event.output_count > 0 &&
               event.outputs[0].integer != IntegerType::None;
    }
    /// After op number `seq`, while its operands are alive.
    void look(const OpEvent& event, OpSeq seq) noexcept;

    /// What op `seq` stored into `storage`, if that wrapped around or was cut.
    bool find(const void* storage, OpSeq seq, Wrap& wrap) const noexcept;

  private:
    static constexpr size_t kKept = 256;
    std::array<AtomicRecord<Wrap>, kKept> wraps_{};
    std::atomic<uint64_t> next_{0};
    /// Fractions are cut off on purpose all the time: they do not take the place of what wrapped around.
    static constexpr size_t kCuts = 64;
    std::array<AtomicRecord<Wrap>, kCuts> cuts_{};
    std::atomic<uint64_t> next_cut_{0};
};

}  // namespace numsan
