#include "host/finding/traced_frames.h"

#include <algorithm>

namespace numsan {
namespace {

/// Which frames show a qualified name, and which show the plain one, is for Python's version to say.
std::string plain_name(const std::string& function) { return function.substr(function.rfind('.') + 1); }

bool same_function(const SourceFrame& a, const SourceFrame& b) {
    return a.file == b.file && plain_name(a.function) == plain_name(b.function);
}

/// Without the frames by which numsan runs the graph of a compiled region again (compiled_regions.py).
void drop_replay(std::vector<SourceFrame>& stack) {
    const auto is = [](const SourceFrame& frame, const char* name) { return plain_name(frame.function) == name; };
    const auto runs = std::find_if(stack.begin(), stack.end(),
                                   [&](const SourceFrame& frame) { return is(frame, "numsan_runs_region"); });
    const auto called = std::find_if(runs, stack.end(), [&](const SourceFrame& frame) {
        return is(frame, "numsan_region") || is(frame, "numsan_backward");
    });
    if (called == stack.end()) return;
    const auto first =
        std::find_if(stack.begin(), runs, [](const SourceFrame& frame) { return frame.file == kOwnCode; });
    stack.erase(first, called + 1);
}

}  // namespace

std::vector<SourceFrame> with_traced_frames(std::vector<SourceFrame> stack, const LiveNames::Traced& traced,
                                            const PlaceFinder& places) {
    drop_replay(stack);
    if (traced.empty()) return stack;
    std::vector<SourceFrame> whole;
    for (size_t i = 0; i < stack.size(); ++i) {
        const auto made_from = traced.find({stack[i].file, stack[i].line});
        if (made_from == traced.end() || made_from->second.empty()) {
            whole.push_back(std::move(stack[i]));
            continue;
        }
        const SourceFrame& outermost = made_from->second.back();
        whole.insert(whole.end(), made_from->second.begin(), made_from->second.end());
        const auto caller = std::find_if(stack.begin() + static_cast<std::ptrdiff_t>(i) + 1, stack.end(),
                                         [&](const SourceFrame& frame) {
                                             const Origin whose = places.origin(frame);
                                             return whose == Origin::User || whose == Origin::Library;
                                         });
        if (caller != stack.end() && same_function(*caller, outermost) && caller->line <= outermost.line) {
            whole.back().function = caller->function;
            // Between them the graph is called, which is no module of the program's.
            std::for_each(stack.begin() + static_cast<std::ptrdiff_t>(i), caller,
                          [](auto& frame) { frame.self = nullptr; });
            stack.erase(caller);
        }
        whole.push_back(std::move(stack[i]));
    }
    return whole;
}

}  // namespace numsan
