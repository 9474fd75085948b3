// Fills the table of one launch from tensors, on the host. No CUDA call, no allocation.
#pragma once

#include <cstdint>

#include "cuda/kernel/scan_table.h"
#include "host/base/tensor_view.h"

namespace numsan::gpu {

enum class Admission : uint8_t {
    Added,
    Empty,        ///< no elements: there is nothing to scan
    Full,         ///< close and launch this batch, begin the next one, add the tensor again
    Unsupported,  ///< more than kMaxScanDims dimensions, a negative stride, or misaligned lanes: count as unscanned
};

/// Items that are looked at only when an output is bad.
struct InputItems {
    uint16_t first = 0;
    uint8_t count = 0;
};

/// The table of one launch in the making. Not thread-safe. A full filler is used again and again: 32 KB that a thread
/// keeps.
///
///     filler.begin(header);
///     const InputItems inputs = filler.add_inputs(views, n);        // once for an op, before its outputs
///     if (filler.add(output, slot, order, flags, inputs) == Admission::Full) ...
///     if (filler.close()) launch(filler.fits_small() ? &filler.small() : &filler.large(), grid_blocks(...))
class BatchFiller {
  public:
    /// Forgets everything. `header` gives the addresses, ring_capacity and flags; the rest is close()'s.
    /// With `looks` a look follows the scan where close() finds one worth a launch, and leaves it null elsewhere.
    void begin(const ScanHeader& header) noexcept;

    /// Inputs of the op whose outputs come next: the first `limit` (at most 255) of those that may be read. Those that
    /// cannot be described, or find no room, are left out; ScanItem::argument is the position in `views`. Valid until
    /// the next begin().
    InputItems add_inputs(const TensorView* views, int count, int limit = 255) noexcept;

    /// An output. `slot` and `order` as in ScanItem, `flags` of it: kRaisesGate, kExact. Shapes are copied.
    Admission add(const TensorView& view, uint32_t slot, uint32_t order, uint8_t flags = 0,
                  InputItems inputs = {}) noexcept;

    /// Whether this many tensors find room, whatever their shapes.
    bool has_room(int tensors) const noexcept;

    /// The position that add_inputs() was given of one of InputItems.
    int position_of(int input) const noexcept { return table_.items[input].argument; }

    /// Output number `index` (from 0, in the order of add()), or one of InputItems, is not looked at after all: of an
    /// input zero elements are reported then. Before close().
    void drop(int index) noexcept { table_.items[index].positions = 0; }

    /// For what is known only at the end: flags before close(), scan_blocks after it.
    ScanHeader& header() noexcept { return table_.header; }

    /// Cuts the batch into chunks. False when there is nothing to launch. Nothing can be added after it. `alone`: bytes
    /// of an output and its operands that one block may have to look at.
    bool close(int64_t alone = kAloneBytes) noexcept;

    bool fits_small() const noexcept;
    const ScanTableLarge& large() const noexcept { return table_; }
    /// A copy of the closed batch, with the header as it is now, as the small table. Precondition: fits_small(). Valid
    /// until the next begin().
    const ScanTableSmall& small() noexcept;

  private:
    bool needs_look(int64_t alone) const noexcept;

    ScanTableLarge table_;
    ScanTableSmall small_;
    int inputs_ = 0;  // at the upper end of the items
    int dims_ = 0;
};

/// Describes `view` as an item: data, positions, repeat, ndim, dtype, flags, unit_log2, and its dimensions. The rest
/// of `item` stays as it is. Added, Empty or Unsupported.
Admission describe(const TensorView& view, ScanItem& item, ScanDim (&dims)[kMaxScanDims]) noexcept;

}  // namespace numsan::gpu
