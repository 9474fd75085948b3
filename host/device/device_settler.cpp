#include "host/device/device_settler.h"

#include <pthread.h>
#include <signal.h>

#include <mutex>
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
                const bool answered = event != nullptr && side_.collect(*event);
                // Before the event: what reads a graph's results is reported later than the graph.
                judge_.judge_replays();
                if (!answered) break;
                judge_.judge(*event);
                side_.outcome.born.clear();
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
void DeviceSettler::publish() {
    for (;;) {
        Outcome outcome;
        bool names = false;
        {
            const std::lock_guard<std::mutex> lock(side_.settling);
            if (side_.publishing || !side_.born.empty()) return;
            if (side_.outcome.escaped.empty() && side_.outcome.contaminated.empty() && !side_.names) return;
            side_.publishing = true;
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
            if (!side_.publishing) return;
        }
        DeviceSide::pause();
    }
}

BornHere DeviceSettler::await(OpSeq op) {
    constexpr int64_t kPatience = 2'000'000'000;  // nanoseconds without an answer
    side_.scanner.flush();
    int64_t left = -1;
    int64_t since = side_.clock();
    for (int asked = 0; owner_.on(); ++asked) {
        settle();
        {
            const std::lock_guard<std::mutex> lock(side_.settling);
            if (side_.awaited.count(op) == 0) {
                const auto found = side_.born.find(op);
                return found != side_.born.end() ? found->second : BornHere{};
            }
            const int64_t before = std::exchange(left, side_.log.count());
            if (left != before) {
                since = side_.clock();
            } else if (side_.clock() - since > kPatience) {
                side_.awaited.erase(op);
                side_.late = true;
                return {};
            }
        }
        DeviceSide::pause_briefly(asked);
    }
    return {};
}

void DeviceSettler::kept(OpSeq op) noexcept {
    {
        const std::lock_guard<std::mutex> lock(side_.settling);
        side_.born.erase(op);
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
        if (side_.log.empty()) return;
        idle = side_.log.count() < before ? 0 : idle + 1;
        DeviceSide::pause();
    }
}

}  // namespace numsan
