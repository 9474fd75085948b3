#include "host/device/device_settler.h"

#include <pthread.h>
#include <signal.h>

#include <mutex>
#include <thread>
#include <utility>

namespace numsan {

void DeviceSettler::start() {
    const auto body = [](void* settler) -> void* {
        static_cast<DeviceSettler*>(settler)->run();
        return nullptr;
    };
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    // Without a thread events are settled where the program waits for the device.
    if (pthread_create(&thread, nullptr, body, this) == 0) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void DeviceSettler::run() {
    for (;;) {
        side_.wanted.wait(0);
        side_.wanted.store(0);
        side_.inside.fetch_add(1);
        const bool ending = side_.ending.load();
        if (!ending) settle();
        side_.inside.fetch_sub(1);
        if (ending) return;
        if (!side_.log.empty() || side_.has_graphs.load()) {
            side_.wanted.store(1);
            DeviceSide::pause();
        }
    }
}

void DeviceSettler::settle() noexcept {
    if (!owner_.on()) return;
    side_.inside.fetch_add(1);
    try {
        {
            const std::lock_guard<std::mutex> lock(side_.settling);
            for (;;) {
                DeviceEvent* event = side_.log.front();
                if (side_.log.empty()) side_.late = false;
                const bool answered = event != nullptr && side_.collect(*event);
                // Before the event: what reads a graph's results is reported later than the graph.
                judge_.judge_replays();
                if (!answered) break;
                judge_.judge(*event);
                side_.outcome.born.clear();
                ++side_.judged;
                side_.forget_answers();
                side_.log.pop();
            }
        }
        publish();
    } catch (...) {
        owner_.fail("out of memory or a failure while a device's events were judged");
    }
    side_.inside.fetch_sub(1);
}

/// In the order in which it was found, so by one thread at a time. No thread waits for that one without end: it may ask
/// the interpreter for names.
void DeviceSettler::publish(OpSeq kept) {
    for (;;) {
        Outcome outcome;
        bool names = false;
        {
            const std::lock_guard<std::mutex> lock(side_.settling);
            if (kept != OpSeq::None) side_.kept_back.erase(std::exchange(kept, OpSeq::None));
            if (side_.publishing || !side_.kept_back.empty()) return;
            if (side_.outcome.escaped.empty() && side_.outcome.contaminated.empty() && !side_.names) return;
            side_.publishing = true;
            side_.publisher = std::this_thread::get_id();
            std::swap(outcome, side_.outcome);
            std::swap(names, side_.names);
        }
        owner_.publish(outcome);
        if (names) owner_.name_state();
        const std::lock_guard<std::mutex> lock(side_.settling);
        side_.publishing = false;
    }
}

void DeviceSettler::await_published() noexcept {
    constexpr int kPatience = 500;  // pauses: a second; a busy machine looks names up for longer than a fifth of one
    for (int i = 0; i < kPatience; ++i) {
        {
            const std::lock_guard<std::mutex> lock(side_.settling);
            if (!side_.publishing && side_.kept_back.empty()) return;
        }
        DeviceSide::pause();
    }
}

std::optional<OpOutcomeHere> DeviceSettler::await(OpSeq op) {
    constexpr int64_t kPatience = 2'000'000'000;  // nanoseconds without an answer
    side_.scanner.flush();
    int64_t judged = -1;
    int64_t since = side_.clock();
    for (int asked = 0; owner_.on(); ++asked) {
        settle();
        {
            const std::lock_guard<std::mutex> lock(side_.settling);
            if (side_.awaited.count(op) == 0) {
                const auto found = side_.kept_back.find(op);
                return found != side_.kept_back.end() ? std::optional(found->second) : std::nullopt;
            }
            if (const int64_t before = std::exchange(judged, side_.judged); judged != before) since = side_.clock();
            if (side_.late || side_.clock() - since > kPatience) {
                side_.awaited.erase(op);
                side_.late = true;
                return std::nullopt;
            }
        }
        DeviceSide::pause_briefly(asked);
    }
    return std::nullopt;
}

void DeviceSettler::kept(OpSeq op) noexcept {
    try {
        publish(op);
    } catch (...) {
        owner_.fail("out of memory or a failure while a device's events were published");
    }
    settle();
    await_published();
}

void DeviceSettler::drain() noexcept {
    constexpr int kPatience = 1000;  // pauses without an answer: two seconds
    side_.scanner.flush();
    side_.ending.store(true);
    for (int idle = 0; idle < kPatience && side_.inside.load() > 0; ++idle) DeviceSide::pause();
    for (int idle = 0; idle < kPatience && owner_.on();) {
        const int64_t before = side_.log.count();
        settle();
        bool kept_back = false;
        {
            const std::lock_guard<std::mutex> lock(side_.settling);
            const bool elsewhere = side_.publishing && side_.publisher != std::this_thread::get_id();  // else it halts
            kept_back = elsewhere || !side_.kept_back.empty();
        }
        if (side_.log.empty() && !kept_back) return;
        idle = side_.log.count() < before ? 0 : idle + 1;
        DeviceSide::pause();
    }
    {
        const std::lock_guard<std::mutex> lock(side_.settling);
        side_.kept_back.clear();  // of threads that copy for longer than that
        side_.awaited.clear();
    }
    settle();
}

}  // namespace numsan
