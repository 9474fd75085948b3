// What a device is asked to look at if a value that leaves is bad: results that the tier did not read when they were
// made.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "host/base/device_scanner.h"
#include "host/device/device_log.h"
#include "host/event/op_log.h"

namespace numsan {

/// Makes up a look back of what the log's tensors are by now, as scans for the device.
class LookBackScans {
  public:
    /// Only what `queue` is in order with, of the graph of `capture`: then for each of its replays, which reports by
    /// the numbers that the ops' outputs have. Storages are pinned and added to `pinned`: the caller gives them back
    /// after the hand over. Throws std::bad_alloc.
    LookBackScans(OpLog& log, const DeviceQueue& queue, std::vector<const void*>& pinned, uint64_t capture = 0);

    /// Ops of the log that the queue is not in order with.
    size_t elsewhere() const { return elsewhere_; }
    bool is_of_graph() const { return capture_ != 0; }
    size_t numbers() const { return look_back_->looked.size(); }
    /// `sequence`: of the first, if nothing is captured.
    DeviceScanner::Taken hand_over(DeviceScanner& scanner, ScanTicket sequence);
    DeviceLookBack* release() { return look_back_.release(); }

  private:
    /// A copy of what is needed of an op: others may push it out of the log meanwhile.
    struct Kept {
        uint64_t number;
        OutputSet unread;
        bool certain;
        int32_t inputs, outputs;
        size_t first;                               ///< in views_: inputs, then outputs
        ScanTicket numbers[LoggedOp::kMaxOutputs];  ///< in a graph: of outputs
    };
    struct Asked {
        size_t view;
        size_t first_input;  ///< in inputs_
        int32_t inputs;
        bool exact;
        ScanTicket number;  ///< in a graph
    };
    void keep(uint64_t number, const LoggedOp& op);
    void keep(const TensorView& view);
    void choose(const Kept& op, std::vector<const void*>& pinned);
    bool is_written_after(const TensorView& view, uint64_t number) const;
    bool is_there(const TensorView& view, std::vector<const void*>& pinned) const;

    OpLog& log_;
    const DeviceQueue queue_;
    const uint64_t capture_;
    std::unique_ptr<DeviceLookBack> look_back_ = std::make_unique<DeviceLookBack>();
    std::vector<Kept> ops_;
    std::vector<TensorView> views_;
    std::vector<int64_t> dims_;
    std::vector<Asked> asked_;
    std::vector<TensorView> inputs_;
    std::unordered_map<const void*, uint64_t> last_writer_;  ///< by storage: the number of an op of ops_
    size_t elsewhere_ = 0;
    std::set<const void*> parameters_;  ///< that are looked at for their own sake
};

}  // namespace numsan
