// When events of a device are judged: by a thread of numsan's while the program does something else, and where the
// program waits for the device.
#pragma once

#include <memory>
#include <optional>

#include "host/device/device_judge.h"
#include "host/device/device_side.h"
#include "host/verdict/verdict.h"

namespace numsan {

/// What devices need of the session that they belong to. [MT] None is called with DeviceSide::settling held.
class DeviceOwner {
  public:
    virtual ~DeviceOwner() = default;
    virtual bool on() const noexcept = 0;
    /// An internal failure, see Session::fail.
    virtual void fail(const char* why) noexcept = 0;
    virtual void publish(const Outcome& outcome) = 0;
    /// An optimizer's step on the device is over, and settled: names of the tensors that it wrote may be asked.
    virtual void name_state() noexcept = 0;
};

/// [MT]
class DeviceSettler {
  public:
    /// All outlive this.
    DeviceSettler(DeviceSide& side, DeviceReadings& readings, EventParts& parts, DeviceOwner& owner)
        : side_(side), owner_(owner), judge_(side, readings, parts) {}

    /// Starts the thread that settles events while the program does something else. It makes no call of the driver's.
    /// Throws std::bad_alloc.
    void start();
    /// Judges the events whose results are there, oldest first, and publishes what was found.
    void settle() noexcept;
    /// Before the program acts upon a value, maybe for the last time, what is known of it should be reported. The
    /// thread that reports may need the interpreter's lock, which this thread may hold: waits a second at most.
    void await_published() noexcept;
    /// Waits until that op, DeviceIntake::op() says which, is judged, as long as the device gets on with its work: what
    /// it did, where that is something. Nothing is published then before kept(), on the same thread.
    std::optional<OpOutcomeHere> await(OpSeq op);
    void kept(OpSeq op) noexcept;
    /// Waits for what the device still has to do, as long as it gets on with it. For the end of the program.
    void drain() noexcept;

  private:
    void run();
    void publish(OpSeq kept = OpSeq::None);

    DeviceSide& side_;
    DeviceOwner& owner_;
    DeviceJudge judge_;
};

}  // namespace numsan
