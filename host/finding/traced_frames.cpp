#include "host/finding/traced_frames.h"

#include <algorithm>

namespace numsan {
namespace {

/// Which frames show a qualified name, and which show the plain one, is for Python's version to say.
std::string plain_name(const std::string& function) { return function.substr(function.rfind('.') + 1); }

bool same_function(const SourceFrame& a, const SourceFrame& b) {
    return a.file == b.file && plain_name(a.function) == plain_name(b.function);
}

/// Without the frames by which numsan looks at a compiled region, and runs its graph again (compiled_regions.py).
void drop_own(std::vector<SourceFrame>& stack) {
    const auto calls = [](const SourceFrame& frame) {
        return is_region_frame(frame, "numsan_region") || is_region_frame(frame, "numsan_backward") ||
               is_region_frame(frame, "numsan_package");
    };
    const auto own = [](const SourceFrame& frame) { return frame.file == kOwnCode; };
    const auto runs = std::find_if(stack.begin(), stack.end(), [](const SourceFrame& frame) {
        return is_region_frame(frame, "numsan_runs_region");
    });
    if (const auto called = std::find_if(runs, stack.end(), calls); called != stack.end())
        stack.erase(std::find_if(stack.begin(), runs, own), called + 1);
    std::erase_if(stack, [&](const SourceFrame& frame) { return own(frame) || calls(frame); });
}

}  // namespace

std::vector<SourceFrame> with_traced_frames(std::vector<SourceFrame> stack, const LiveNames::Traced& traced,
                                            const PlaceFinder& places) {
    drop_own(stack);
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
