// What is kept once a tensor of a device was seen: the scanner, the events that wait for it, its answers.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "host/base/device_scanner.h"
#include "host/device/device_log.h"
#include "host/device/gathered_gradients.h"
#include "host/device/governor.h"
#include "host/event/op_log.h"
#include "host/event/tier_policy.h"
#include "host/verdict/verdict.h"

namespace numsan {

/// What an op on a device did that its own thread publishes: it gave birth, or took a birth to where it matters.
/// Of ops of several threads at once the last of these threads publishes all.
struct OpOutcomeHere {
    std::vector<BirthId> born;
    OpContext context;  ///< without the name of its node
};

/// Lives as long as the process. Members below `settling` are guarded by it; nothing of the program's runs under it.
struct DeviceSide {
    /// `storages`: what can be asked of the memory of tensors; null: every output is read at once. Throws
    /// std::bad_alloc.
    DeviceSide(DeviceScanner& s, const Options& options, const StorageApi* storages,
               Governor::Clock time = &Governor::now)
        : scanner(s),
          clock(time),
          tier(tier_of(options), TierPolicy::Memory::Device),
          governor(budget_of(options), time),
          replays(storages != nullptr ? replays_of(options) : ReplayBudget{}),
          gradients(s, storages) {
        if (storages == nullptr) return;
        unread.use(*storages);
        captured.use(*storages);
    }
    /// Whether the program waits for the device at each op: a dump or a stop needs the op's arguments while they are
    /// there.
    static bool waits(const Options& options) { return !options.dump.empty() || options.break_at; }
    static Tier tier_of(const Options& options) {
        if (options.tier != Tier::Auto) return options.tier;
        return waits(options) ? Tier::Full : Tier::Sentinel;
    }
    static Governor::Budget budget_of(const Options& options);
    /// The same share for what graphs scan.
    static ReplayBudget replays_of(const Options& options);

    /// What became of the numbers of the oldest event, as far as that is known.
    struct Answer {
        bool read;
        Range range;
        int hit;  ///< in `hits`, -1: none
        const char* why;
    };

    DeviceScanner& scanner;
    const Governor::Clock clock;
    DeviceLog log;
    TierPolicy tier;
    Governor governor;
    const ReplayBudget replays;
    GatheredGradients gradients;
    OpLog unread;    ///< ops whose outputs the tier left out, if it is usable
    OpLog captured;  ///< ops of the last graph that was captured, where `unread` is usable and its scans may take turns
    std::atomic<uint64_t> last_capture{0};      ///< in which something was scanned
    std::atomic<uint64_t> governed_capture{0};  ///< the last in which scans take turns
    /// Ops of `unread` with numbers below are of steps that are over. Those from `last_step` on, of two optimizers, may
    /// still have left a parameter bad.
    std::atomic<uint64_t> steps_over{0}, step_before{0}, last_step{0};
    std::atomic<bool> asking{false};        ///< a thread makes up a look back; guards the next two
    int64_t asked_at = 0, asking_took = 0;  ///< nanoseconds
    std::atomic<int64_t> alarmed_at{0};
    std::atomic<uint32_t> wanted{0};      ///< the reader's bell: 1 while there is something to settle
    std::atomic<bool> ending{false};      ///< the thread that ends the program settles the rest
    std::atomic<bool> has_graphs{false};  ///< an op was captured: replays may report any time
    std::atomic<int> captures_due{0};     ///< captured ops whose own turn is still to come
    std::atomic<int> inside{0};           ///< threads that settle, until what they found is published

    std::atomic<int64_t> lost_events{0};     ///< gradients that reached a leaf, and found no room in the log
    std::atomic<int64_t> unread_leaving{0};  ///< values that left, and could not be read
    std::atomic<const char*> why_unread_leaving{nullptr};  ///< of the first; a literal
    std::atomic<int64_t> looks_left_out{0};                ///< look backs that could not ask about all of the log

    std::mutex settling;
    std::thread::id publisher;  ///< while `publishing`
    bool publishing = false;    ///< a thread publishes what was found, and looks for more before it stops
    Outcome outcome;            ///< found, not published yet
    bool names = false;         ///< an optimizer has stepped: names of what it wrote are to be asked
    std::vector<Answer> answers;
    std::vector<DeviceHit> hits;
    std::set<OpSeq> awaited;  ///< ops whose threads wait for what is found of them
    /// Of such ops: nothing is published until their threads have kept what they want of it.
    std::map<OpSeq, OpOutcomeHere> kept_back;
    int64_t judged = 0;  ///< events
    bool late = false;   ///< the device did not answer in time: not waited for until it has caught up
    /// Storages in which replays left bad values, and in which step: a replay without any reports nothing.
    std::map<const void*, int64_t> replayed;

    struct Choice {
        OutputSet outputs;
        Governor::Spent spent;  ///< what for
    };
    /// The outputs of an op in step `step` that are read now, see TierPolicy::reads(). What leaves is read besides. To
    /// be asked once for each op.
    Choice reads(const OpEvent& event, int64_t step) noexcept;

    /// For a thread that waits for the device without asking it.
    static void pause();

    /// With answers collected: what was found of a tensor that was looked at closely; null without.
    const DeviceHit* hit_of(const Answer& answer) const {
        return answer.hit >= 0 ? &hits[static_cast<size_t>(answer.hit)] : nullptr;
    }
    /// True when all answers of `event` are there.
    bool collect(const DeviceEvent& event);
    /// For a thread that waits for its op: as often as it has asked before, a moment each.
    static void pause_briefly(int asked);
    /// That op's thread will wait for it: before its event is committed. False: the device is late. May throw.
    bool begin_await(OpSeq op);
    /// In a forked child, with all locks held: the parent settles and publishes its own events.
    void begin_child();
    void forget_answers() {
        answers.clear();
        hits.clear();
    }
    /// With answers collected: the answer for a watched operand or gradient, by its place; null: none.
    const Answer* watched_answer(const DeviceEvent& event, int32_t i) const;
    /// With answers collected: a watched operand is bad, so the device has looked back.
    bool saw_bad(const DeviceEvent& event) const;
    /// An Optimizer.step is over; `end`: of `unread`, then.
    void step_over(uint64_t end) { last_step.store(step_before.exchange(steps_over.exchange(end))); }
    /// See TierPolicy::alarm(); a program that never steps is alarmed for a while only.
    void alarm(int64_t step);

  private:
    bool collect(const DeviceEvent& event, uint64_t numbers);
};

}  // namespace numsan
