// Which launches of a graph look in a replay. The device decides: no replay is shown to the host.
#pragma once

#include <cstdint>

#include "cuda/kernel/atomics.cuh"
#include "cuda/kernel/scan_table.h"
#include "cuda/kernel/target.cuh"

namespace numsan::gpu {

/// What the window is given back after a pause, in replays: more is not saved for later.
inline constexpr uint64_t kMostSaved = 4;
/// Nanoseconds. No two replays of one training are further apart; a debt ends there, too.
inline constexpr uint64_t kLongestPause = uint64_t(1) << 40;

/// What it looks at is charged.
NUMSAN_DEVICE bool takes_turns(const ScanHeader& header) {
    return header.window != nullptr && (header.flags & kTakesTurns) != 0;
}

/// Of what such a launch finds the next replay is told.
NUMSAN_DEVICE bool looks_each_time(const ScanHeader& header) {
    return header.window != nullptr && header.gate == nullptr && (header.flags & kTakesTurns) == 0;
}

/// The same for all blocks of a launch: only the first launch of a replay changes the window, as it ends. Its own turn
/// is thus a replay late.
NUMSAN_DEVICE bool has_turn(const ScanHeader& header) {
    if (!takes_turns(header) || shared_load(&header.window->capture) != header.capture) return true;
    const uint32_t open = shared_load(&header.window->open), begin = shared_load(&header.window->begin);
    if (open == kAllOpen) return true;
    const uint32_t number = header.launch_number;
    return (number >= begin ? number - begin : number + shared_load(&header.window->launches) - begin) < open;
}

/// The launch is the first or the last of its graph.
NUMSAN_DEVICE bool is_at_an_end(const ScanHeader& header) {
    return header.window != nullptr &&
           (header.launch_number == 0 || header.launch_number + 1 == shared_load(&header.window->launches));
}

/// One thread of each launch. From the next replay on others take turns: the window is this replay's by then, unless
/// the launch is the first of it, which says so as it ends.
NUMSAN_DEVICE void govern(const ScanHeader& header) {
    if (header.window != nullptr && (header.flags & kGoverns) != 0) shared_store(&header.window->governed, 1u);
}

/// One thread. A launch has looked for so many nanoseconds.
NUMSAN_DEVICE void charge(ReplayWindow& window, uint64_t nanoseconds) {
    window.spent += nanoseconds;
    ++window.looked;
}

/// What is left to spend, once the last replay is paid for and the time since its beginning has earned its share.
NUMSAN_DEVICE int64_t credit_after(const ReplayWindow& window, uint64_t passed, uint32_t share) {
    const auto earned = static_cast<int64_t>((passed < kLongestPause ? passed : kLongestPause) * share >> 16);
    const int64_t most = static_cast<int64_t>(kMostSaved) * earned, least = -static_cast<int64_t>(kLongestPause);
    int64_t credit = window.credit + earned;
    credit = (credit < most ? credit : most) - static_cast<int64_t>(window.spent);
    return credit > least ? credit : least;
}

/// Moves the window on by what it was, and opens it as far as there is credit.
NUMSAN_DEVICE void move(ReplayWindow& window) {
    const uint32_t launches = window.launches;
    uint32_t begin = window.begin + (window.open == kAllOpen ? 0 : window.open);
    if (begin >= launches) begin = begin - launches < launches ? begin - launches : 0;
    window.begin = begin;
    window.open = 0;
    if (window.credit <= 0) return;
    const uint64_t more = static_cast<uint64_t>(window.credit) / (window.average != 0 ? window.average : 1);
    window.open = more < launches ? static_cast<uint32_t>(more) + 1 : launches;
}

/// One thread, as the first launch of a replay ends.
NUMSAN_DEVICE void begin_replay(const ScanHeader& header, uint64_t now) {
    ReplayWindow& window = *header.window;
    if (window.capture != header.capture) {
        window = ReplayWindow{};
        window.capture = header.capture;
        window.began = now;
        window.warm_until = now + uint64_t(header.replay_warmup) * 1000;
        window.open = kAllOpen;
    }
    window.launches = shared_load(&header.replays->launches);
    if (window.looked != 0) {
        const uint64_t took = window.spent / window.looked;
        window.average = window.average == 0 ? took : (3 * window.average + took) / 4;
    }
    // Something that is looked at each time was bad, and had not been: how it came about shows in a whole replay.
    const bool alarmed = window.bad != 0 && window.was_bad == 0;
    window.was_bad = window.bad;
    window.bad = 0;
    if (window.is_free != 0) window.spent = 0;
    window.is_free = window.governed == 0 || now < window.warm_until ? 1 : 0;
    if (window.is_free != 0) {
        window.open = kAllOpen;
    } else {
        window.credit = credit_after(window, now > window.began ? now - window.began : 0, header.replay_share);
        move(window);
        if (alarmed) window.open = kAllOpen;
    }
    window.began = now;
    window.spent = 0;
    window.looked = 0;
}

}  // namespace numsan::gpu
