// The seam to memory that a device writes when its queue of work gets there: what a scan finds arrives later.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/base/device_queue.h"
#include "host/base/health.h"
#include "host/base/tensor_view.h"

namespace numsan {

struct StorageApi;

/// What scans of a graph may take that take turns.
struct ReplayBudget {
    uint32_t share = 0;   ///< of the time that passes, in 65,536ths; 0: none takes turns
    uint32_t warmup = 0;  ///< microseconds from the first replay on in which all look
};

/// Outputs that one op is about to write, and what it reads: all in memory of the queue's device. Views are
/// valid during the call only.
struct DeviceScan {
    DeviceQueue queue;
    const TensorView* outputs;
    int32_t output_count;
    /// those with kScannable are looked at closely if an output is bad
    const TensorView* inputs;
    int32_t input_count;
    /// Of the first output; the others count on. Grows from op to op, but for what a graph looks at behind a gate by
    /// the numbers of scans that are in it.
    uint64_t sequence;
    bool raises_gate;  ///< a bad output lets the device look at what the next scan_behind_gate() hands over
    bool exact;  ///< each output is looked at closely, bad or not: Reading::hit has what was found. Not in a graph
    /// Null: the scan is in its queue on return. Else small outputs may be gathered until their queue's next scan,
    /// before_write() of one of them, or flush(). What they lie in is held by this meanwhile: for tensors that somebody
    /// keeps anyway. Lives as long as the scanner, the same for all.
    const StorageApi* held_by;
    /// The same for all scans of a graph. Turns are taken once a scan of it has raises_gate; else all look in each
    /// replay.
    ReplayBudget replays;
    bool takes_turns;
};

/// What the exact pass found of a bad output and of the op's operands.
struct DeviceHit {
    static constexpr int32_t kMaxInputs = 8;
    struct Input {
        int32_t index;  ///< in DeviceScan::inputs
        Health health;
    };
    Health output;
    Input inputs[kMaxInputs];
    int32_t input_count;
    /// Of a graph: the replay, in the lower half; the upper half says which replays are counted together, a graph's.
    uint64_t replay;
};

struct ScannedDevice {
    int index;
    std::string name;
    int major, minor;  ///< of the compute capability
};

/// Scans tensors where a device has them, in the order of its queues, and waits for it in read() alone. [MT] but for
/// `answer`.
/// Nothing throws.
class DeviceScanner {
  public:
    virtual ~DeviceScanner() = default;

    enum class Taken : uint8_t {
        Now,       ///< `answer` will report every output
        Captured,  ///< the queue is being captured into a graph: next_replayed() reports, `answer` does not
        No,        ///< this device cannot be scanned: `answer` reports nothing
    };
    /// In a thread that the op ran on, right after it: scans for one queue, one at least. Small outputs may be gathered
    /// first.
    virtual Taken scan(const DeviceScan* scans, int32_t count) noexcept = 0;

    /// Scans for one queue that the device leaves alone unless an output that raised the gate was bad. Where it was
    /// not, nothing will be reported of their outputs: give_up() says that no answer is awaited.
    virtual Taken scan_behind_gate(const DeviceScan* scans, int32_t count) noexcept = 0;
    virtual void give_up(uint64_t sequence) noexcept = 0;

    /// Another number, not 0, for each capture whose graph is made of what the queue is given, to run later, maybe
    /// often; 0: it runs now.
    virtual uint64_t capture_of(const DeviceQueue& queue) noexcept = 0;

    /// An op of this thread is about to write `storage` in place: what was handed over of it is put into its queue.
    virtual void before_write(const void* storage) noexcept = 0;
    /// Launches beside the first that the scan of an output of so many bytes takes, operands included.
    virtual int64_t further_launches(int64_t bytes, bool exact) const noexcept = 0;
    /// Nanoseconds that launches over so many bytes in all cost the device, as it measured the last ones, an estimate
    /// before; a launch not less than it costs the thread that launches, by published figures.
    virtual int64_t cost(int device, int64_t launches, int64_t bytes) const noexcept = 0;
    /// Copies bytes of a device's memory to the host, as they are once `queue` has done all that it was given: waits
    /// for that. False: the queue is being captured, or the device cannot be read.
    virtual bool read(const DeviceQueue& queue, const void* from, int64_t bytes, void* to) noexcept = 0;
    /// Everything handed over so far is put into its queue. Before the program waits for a device.
    virtual void flush() noexcept = 0;

    enum class Answer : uint8_t {
        NotYet,
        Read,     ///< `range` is set; with range.suspicious or DeviceScan::exact `hit` too, where it was not lost
        NotRead,  ///< it could not be looked at after all: `why` says it
    };
    struct Reading {
        Range range;
        DeviceHit hit;
        bool has_hit;
        const char* why;  ///< a literal
    };
    /// What became of the output with this number. One thread at a time. Answered once: then it is forgotten.
    virtual Answer answer(uint64_t sequence, Reading& reading) noexcept = 0;

    /// The next bad tensor that a replay of a graph reported: the number it had when it was captured. Once the replay
    /// is over, those of one in the order of their numbers. False: no more for now. One thread at a time, the same as
    /// `answer`.
    virtual bool next_replayed(uint64_t& sequence, DeviceHit& hit) noexcept = 0;
    /// The number of a captured output whose graph is gone: once next_replayed() has reported its hits, it reports that
    /// output no more. False: none for now. One thread at a time, the same.
    virtual bool next_ended(uint64_t& sequence) noexcept = 0;
    /// The process ends: what is held is given back no more, it may have nowhere to go.
    virtual void keep_held() noexcept = 0;

    /// Whether the device writes this memory of the host by itself, when its queue gets there, so that a copy which has
    /// returned may not be there yet.
    virtual bool writes_later(const void* data) const noexcept = 0;

    /// Numbers that `answer` distinguishes: a number may be used for an output only after the one so much smaller has
    /// been answered or given up.
    virtual uint64_t window() const noexcept = 0;

    /// Forked child, or the end of the process: nothing is handed to the device any more.
    virtual void close() noexcept = 0;
    /// Reports that found no room: bad outputs of replays, and what the exact pass found of others.
    virtual int64_t lost() const noexcept = 0;
    /// Of memory on devices that is kept for scanning.
    virtual int64_t device_bytes() const noexcept = 0;
    /// Those that something was scanned on. Throws std::bad_alloc.
    virtual std::vector<ScannedDevice> devices() const = 0;
    /// The first thing that went wrong, in one line; empty when nothing did.
    virtual const char* reason() const noexcept = 0;
};

}  // namespace numsan
