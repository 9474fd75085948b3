// The one door to all that concerns devices. Without a device's tensor nothing of it is made.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "host/base/adapter_abi.h"
#include "host/base/device_scanner.h"
#include "host/base/scanner.h"
#include "host/device/device_log.h"
#include "host/device/device_readings.h"
#include "host/device/device_settler.h"
#include "host/event/event_parts.h"
#include "host/event/thread_state.h"
#include "host/finding/run_summary.h"
#include "host/options/options.h"

namespace numsan {

/// Null, and in `why` the reason, where devices cannot be scanned. The scanner lives as long as the process.
using MakeDeviceScanner = DeviceScanner* (*)(const OpEvent& first, std::string& why);

/// Lives as long as the process, as its thread does. [MT]
class Devices {
  public:
    /// `host` reads host memory. All outlive this.
    Devices(const Options& options, const Scanner& host, DeviceReadings& readings, EventParts& parts,
            DeviceOwner& owner)
        : options_(options), host_(host), readings_(readings), parts_(parts), owner_(owner) {}

    /// Makes the scanner when the first tensor of a device is seen; before the first event.
    void use(MakeDeviceScanner make) noexcept { make_scanner_ = make; }
    /// What can be asked of storages, once the adapter is there.
    void use(const StorageApi& storages) noexcept { storages_.store(&storages, std::memory_order_release); }

    /// An op that touches a device's memory. False: devices cannot be scanned, so it is the host's. May throw.
    bool op(ThreadState& thread, const OpEvent& event);
    /// As op(), and waits for the device: what the op did, where that is something. Nothing is published then before
    /// kept(), on the same thread.
    bool op(ThreadState& thread, const OpEvent& event, std::optional<OpOutcomeHere>& done);
    void kept(const OpOutcomeHere& done) noexcept;
    /// A node that adds to the gradient of a device's leaf. False: as for op(). May throw.
    bool node(const NodeEvent& event, const OpContext& context);
    /// False: nothing waits for a device, so that what is marked can be done at once.
    bool mark(DeviceEvent::Kind kind) noexcept;

    /// An op of this thread is about to write a device's memory in place.
    void before_write(const void* storage) noexcept;
    /// An op of this thread is about to hand a device's values to the host.
    void before_wait() noexcept;
    /// DeviceScanner::read(); false without a scanner, too.
    bool read(const DeviceQueue& queue, const void* from, int64_t bytes, void* to) noexcept;
    /// Judges what is known by now.
    void settle() noexcept;
    /// After a failure inside an event: nothing of a look back stays pinned.
    void unpin(ThreadState& thread) noexcept;

    /// The program ends: no more gradients wait for each other.
    void begin_end() noexcept;
    /// Waits for what devices still have to do, two seconds without progress at most.
    void drain() noexcept;

    /// Whether events were left when the program ended.
    bool has_events() const noexcept;
    /// What was seen of devices, and what of them is not known. `finished`: the run is over.
    void add_to(RunSummary& run, bool finished) const;

    // Around a fork, after the reporter's lock and before that of the rounds.
    void lock();
    void unlock();
    /// In a forked child, before unlock(): what the parent has to settle is the parent's.
    void begin_child();

  private:
    struct Parts;
    Parts* parts() const noexcept { return made_.load(std::memory_order_acquire); }
    Parts* parts(const OpEvent& first) noexcept;

    const Options& options_;
    const Scanner& host_;
    DeviceReadings& readings_;
    EventParts& parts_;
    DeviceOwner& owner_;
    MakeDeviceScanner make_scanner_ = nullptr;
    std::atomic<const StorageApi*> storages_{nullptr};
    std::string why_none_;  ///< why there is no scanner; written once, before the first is asked for
    std::once_flag once_;
    std::atomic<Parts*> made_{nullptr};
};

}  // namespace numsan
