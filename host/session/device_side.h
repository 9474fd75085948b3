// What a session keeps once a tensor of a device was seen: the scanner, the events that wait for it, what it told.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "host/analyze/verdict.h"
#include "host/core/device_scanner.h"
#include "host/session/device_log.h"

namespace numsan {

/// Lives as long as the process. Members below `settling` are guarded by it; nothing of the program's runs under it.
struct DeviceSide {
    explicit DeviceSide(DeviceScanner& s) : scanner(s) {}

    /// What became of the handed outputs of the oldest event, as far as that is known.
    struct Answer {
        bool read;
        Range range;
        int hit;  ///< in `hits`, -1: none
        const char* why;
    };

    DeviceScanner& scanner;
    DeviceLog log;
    std::atomic<uint32_t> wanted{0};  ///< the reader's bell: 1 while there is something to settle
    std::atomic<bool> ending{false};  ///< the thread that ends the program settles the rest
    std::atomic<bool> has_graphs{false};  ///< an op was captured: replays may tell any time
    std::atomic<int> captures_due{0};  ///< captured ops whose own turn is still to come
    std::atomic<int> inside{0};       ///< threads that settle, until they have told what they found

    std::mutex settling;
    bool publishing = false;  ///< a thread is telling what was found, and looks for more before it stops
    Outcome outcome;          ///< found, not told yet
    bool names = false;       ///< an optimizer has stepped: names of what it wrote are to be asked
    std::vector<Answer> answers;
    std::vector<DeviceHit> hits;
    std::vector<const DeviceEvent*> captured;  ///< by their numbers; never freed: a graph may run any time
    /// Storages in which replays left bad values, and in which step: a replay without any tells nothing.
    std::map<const void*, int64_t> replayed;

    /// True when all answers of `event` are there.
    bool collect(const DeviceEvent& event);
    void forget_answers() {
        answers.clear();
        hits.clear();
    }
    const DeviceEvent* captured_at(uint64_t sequence) const;
};

}  // namespace numsan
