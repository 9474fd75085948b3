#include "host/session/device_side.h"

#include <algorithm>

namespace numsan {

bool DeviceSide::collect(const DeviceEvent& event) {
    if (!event.scanned) return true;
    while (answers.size() < event.handed) {
        DeviceScanner::Reading reading{};
        const DeviceScanner::Answer answer = scanner.answer(event.sequence + answers.size(), reading);
        if (answer == DeviceScanner::Answer::NotYet) return false;
        const bool read = answer == DeviceScanner::Answer::Read;
        int hit = -1;
        if (read && reading.has_hit) {
            hit = static_cast<int>(hits.size());
            hits.push_back(reading.hit);
        }
        answers.push_back({read, reading.range, hit, reading.why});
    }
    return true;
}

const DeviceEvent* DeviceSide::captured_at(uint64_t sequence) const {
    const auto after = std::upper_bound(captured.begin(), captured.end(), sequence,
                                        [](uint64_t s, const DeviceEvent* event) { return s < event->sequence; });
    if (after == captured.begin()) return nullptr;
    const DeviceEvent* event = *(after - 1);
    return sequence < event->sequence + event->handed ? event : nullptr;
}

}  // namespace numsan
