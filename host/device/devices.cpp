#include "host/device/devices.h"

#include <memory>
#include <string>

#include "host/device/device_intake.h"
#include "host/device/device_side.h"
#include "host/event/look_back.h"

namespace numsan {

struct Devices::Parts {
    Parts(DeviceScanner& scanner, const StorageApi* storages, Devices& d)
        : side(scanner, d.options_, storages),
          settler(side, d.readings_, d.parts_, d.owner_),
          intake(side, d.host_, d.parts_, settler) {}

    DeviceSide side;
    DeviceSettler settler;
    DeviceIntake intake;
};

/// Null when the device cannot be scanned; coverage then says why.
Devices::Parts* Devices::parts(const OpEvent& first) noexcept {
    if (Parts* made = parts()) return made;
    if (make_scanner_ == nullptr) return nullptr;
    try {
        std::call_once(once_, [&] {
            DeviceScanner* scanner = make_scanner_(first, why_none_);
            if (scanner == nullptr) return;
            auto made = std::make_unique<Parts>(*scanner, storages_.load(std::memory_order_acquire), *this);
            made->settler.start();
            made_.store(made.release(), std::memory_order_release);
        });
    } catch (...) {
        owner_.fail("out of memory while a device was prepared");
    }
    return parts();
}

bool Devices::op(ThreadState& thread, const OpEvent& event) {
    Parts* made = parts(event);
    if (made != nullptr) made->intake.op(thread, event, false);
    return made != nullptr;
}

bool Devices::op(ThreadState& thread, const OpEvent& event, std::optional<OpOutcomeHere>& done) {
    Parts* made = parts(event);
    if (made == nullptr) return false;
    const OpSeq op = made->intake.op(thread, event, true);
    if (op != OpSeq::None) done = made->settler.await(op);
    if (op != OpSeq::None && !done) made->settler.await_published();
    return true;
}

void Devices::kept(const OpOutcomeHere& done) noexcept {
    if (Parts* made = parts()) made->settler.kept(done.context.seq);
}

bool Devices::node(const NodeEvent& event, const OpContext& context) {
    Parts* made = parts();
    if (made != nullptr) made->intake.node(event, context);
    return made != nullptr;
}

bool Devices::mark(DeviceEvent::Kind kind) noexcept {
    Parts* made = parts();
    return made != nullptr && made->intake.mark(kind);
}

void Devices::before_write(const void* storage) noexcept {
    if (Parts* made = parts()) made->side.scanner.before_write(storage);
}

void Devices::before_wait() noexcept {
    if (Parts* made = parts()) made->side.scanner.flush();
}

bool Devices::read(const DeviceQueue& queue, const void* from, int64_t bytes, void* to) noexcept {
    Parts* made = parts();
    return made != nullptr && made->side.scanner.read(queue, from, bytes, to);
}

void Devices::settle() noexcept {
    if (Parts* made = parts()) made->settler.settle();
}

void Devices::unpin(ThreadState& thread) noexcept {
    if (Parts* made = parts()) LookBack::unpin(thread, made->side.unread);
}

void Devices::begin_end() noexcept {
    if (Parts* made = parts()) made->side.scanner.keep_held();
}

void Devices::drain() noexcept {
    if (Parts* made = parts()) made->settler.drain();
}

bool Devices::has_events() const noexcept {
    const Parts* made = parts();
    return made != nullptr && !made->side.log.empty();
}

void Devices::add_to(RunSummary& run, bool finished) const {
    const OpCoverage& coverage = parts_.coverage;
    const Parts* made = parts();
    if (made == nullptr) {
        if (coverage.of(OpOutcome::Device) > 0)
            run.lose("tensors on devices: " + (why_none_.empty() ? "host memory only" : why_none_));
        return;
    }
    const DeviceSide& side = made->side;
    run.tiers["cuda"] = to_string(DeviceSide::tier_of(options_));
    if (options_.tier == Tier::Auto) run.tier = run.tiers["cuda"];  // what holds for all of them
    for (const ScannedDevice& device : side.scanner.devices())
        run.devices.push_back(
            {device.index, device.name, std::to_string(device.major) + "." + std::to_string(device.minor)});
    run.device_bytes = side.scanner.device_bytes();
    run.dropped = side.scanner.lost() + side.lost_events.load(std::memory_order_relaxed);
    if (run.dropped > 0) run.incomplete = true;
    if (side.scanner.reason()[0] != '\0') {
        run.lose(std::string("tensors on cuda devices, some or all: ") + side.scanner.reason());
        return;
    }
    if (finished && !side.log.empty())
        run.lose("tensors on devices at the end: of the last " + std::to_string(side.log.count()) +
                 " operations the device has not reported");
    if (const int64_t behind = coverage.of(OpOutcome::Behind); behind > 0)
        run.lose("tensors on devices: " + std::to_string(behind) +
                 " operations came faster than their results could be reported");
    if (const int64_t foreign = coverage.of(OpOutcome::OtherDevice); foreign > 0)
        run.lose("tensors on another device than the operation ran on: of " + std::to_string(foreign) + " operations");
    if (const int64_t refused = coverage.of(OpOutcome::Device); refused > 0)
        run.lose("tensors on devices: the scanner did not take " + std::to_string(refused) + " operations");
    if (const int64_t unread = side.unread_leaving.load(std::memory_order_relaxed); unread > 0) {
        const char* why = side.why_unread_leaving.load();
        run.lose("values that left a device: " + std::to_string(unread) +
                 " could not be read: " + (why != nullptr ? why : "unknown"));
    }
    // The value itself is read: that it is bad is known, only where it came from may not be.
    if (const int64_t looks = side.looks_left_out.load(std::memory_order_relaxed); looks > 0) {
        run.blind_spots.push_back(
            "what led to values that left a device: results of other streams, or more than the "
            "scanner takes at a time, " +
            std::to_string(looks) + (looks == 1 ? " time" : " times"));
    }
}

void Devices::lock() {
    Parts* made = parts();
    if (made == nullptr) return;
    made->side.settling.lock();
    made->side.log.lock();
    made->side.unread.lock();
    made->side.captured.lock();
}

void Devices::unlock() {
    Parts* made = parts();
    if (made == nullptr) return;
    made->side.captured.unlock();
    made->side.unread.unlock();
    made->side.log.unlock();
    made->side.settling.unlock();
}

void Devices::begin_child() {
    Parts* made = parts();
    if (made == nullptr) return;
    made->side.begin_child();
    made->side.scanner.close();
}

}  // namespace numsan
