// A made-up training on a made-up clock, one thread, and what is found in it.
#pragma once

#include <functional>
#include <string>

#include "tests/host/perf/made_loop.h"

namespace numsan {

class MadeTraining : public MadeLoop {
  public:
    MadeUp parameter{{1, 2}, kParameter};
    MadeUp activation{1, 2};
    MadeUp batch{1, 2};
    int64_t ended = 0;
    int64_t own = 0;  ///< that numsan takes for each op
    bool ignored = false;
    bool grad_enabled = true;
    int64_t graph_task = -1;

    void event(OpEvent event, int64_t ns, StackId line) {
        event.grad_enabled = grad_enabled;
        event.graph_task = graph_task;
        MadeLoop::run(event, ns, line, ignored, own);
    }
    void op(const MadeUpOp& made, int64_t ns, StackId line) { event(made.event(), ns, line); }

    /// Reads a batch that another op has written and a parameter: 10 ms.
    void forward() {
        batch.values[0] += 1;
        op({"aten::randn", {}, {batch.returned()}}, kMs, 1);
        op({"aten::mul", {batch.view(), parameter.view()}, {activation.view(kReturned | kRequiresGrad)}}, 9 * kMs, 2);
    }
    void update(const char* name, int64_t ns, StackId line) {
        grad_enabled = false;
        op({name, {parameter.view()}, {parameter.written()}}, ns, line);
        grad_enabled = true;
    }
    void step(StackId line = 3) {
        watch.optimizer_begins(line);
        update("aten::add_", kMs / 10, line);
        watch.optimizer_ends();
        watch.steps_are(++ended);
    }
    void steps(int count, const std::function<void()>& body) {
        for (int i = 0; i < count; ++i) {
            body();
            step();
        }
    }
    using MadeLoop::run;
    SlowRun run() const { return watch.run(PlaceFinder("/env/torch")); }
    /// "NP105:12 NP103:4", costliest first.
    std::string found() const {
        std::string text;
        for (const SlowFinding& one : run().findings)
            text += (text.empty() ? "" : " ") + std::string(info(one.cause).code) + ":" +
                    std::to_string(one.location ? one.location->line : 0);
        return text;
    }
};

}  // namespace numsan
