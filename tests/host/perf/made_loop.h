// A made-up program on a made-up clock, watched by a SlowWatch: what its tests derive their loops from.
#pragma once

#include <atomic>
#include <map>
#include <string>

#include "host/perf/slow_watch.h"
#include "tests/host/verdict/fake_stacks.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {

inline constexpr int64_t kMs = 1'000'000;

class MadeLoop {
  public:
    inline static std::atomic<int64_t> now{1};
    Lineage lineage;
    FakeStacks stacks;
    std::atomic<int64_t> ops{1};
    SlowWatch watch{lineage, stacks, ops, []() noexcept { return now.load(); }};

    MadeLoop() {
        for (int line = 1; line < 40; ++line)
            stacks.stacks[static_cast<StackId>(line)] = {{"/home/me/train.py", "main", line, nullptr, false}};
    }

    /// An op that takes `ns`, of which numsan then takes `own`.
    void run(OpEvent event, int64_t ns, StackId line, bool ignored = false, int64_t own = 0) {
        static std::map<std::string, OpInfo> operators;  // live for ever, as the adapter's do
        event.op = &operators.try_emplace(event.op->name, *event.op).first->second;
        stacks.now = line;
        watch.op_begins();
        now += ns;
        watch.op_ended(event, ignored);
        const OpSeq seq{ops.fetch_add(1)};
        for (int32_t i = 0; i < event.output_count; ++i) lineage.add(event, event.outputs[i], Range{}, seq, line, 0);
        now += own;
        watch.op_taken(event);
    }
};

}  // namespace numsan
