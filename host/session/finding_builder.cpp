#include "host/session/finding_builder.h"

#include <algorithm>
#include <cstring>

#include "host/cause/advice.h"
#include "host/cause/ranking.h"
#include "host/cause/title.h"
#include "host/finding/traced_frames.h"
#include "host/log/format.h"
#include "host/ops/joined_names.h"
#include "host/ops/op_traits.h"

namespace numsan {

namespace {

/// What stays of a finding's place while the program's text around it changes.
std::string kept_place_of(const Finding& finding) {
    const bool diverged = finding.mechanism == Mechanism::HYPER;  // an overflow, too
    std::string key = std::string(to_string(diverged ? Mechanism::OVF : finding.mechanism)) + "|" + finding.op + "|" +
                      to_string(finding.phase);
    if (finding.location) {
        // A cell's file is named after its text, its number counts how often cells were run.
        const std::string& file = finding.location->file;
        key += "|" + (finding.location->cell ? "cell" : file.substr(file.rfind('/') + 1)) + ":" +
               finding.location->function + ":" +
               finding.location->code.value_or(std::to_string(finding.location->line));
    }
    return key;
}

/// Of the module too: one line may be many layers.
std::string fingerprint_of(const Finding& finding, const PlaceFinder& places) {
    std::string key = kept_place_of(finding) + "|" + finding.module.value_or("");
    const int same = finding.location ? places.same_lines_above(*finding.location) : 0;
    if (same > 0) key += "|" + std::to_string(same);
    uint64_t hash = 14695981039346656037ull;  // FNV-1a, 64 bit
    for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    return hex(hash & 0xffffffffffffull, 12);
}

std::vector<StackFrame> frames_of(const std::vector<SourceFrame>& stack) {
    std::vector<StackFrame> frames;
    for (const SourceFrame& frame : stack) {
        StackFrame made{frame.native ? "native" : "python", frame.function, std::nullopt, std::nullopt};
        if (!frame.file.empty()) made.file = frame.file;
        if (frame.line > 0) made.line = frame.line;
        frames.push_back(std::move(made));
    }
    return frames;
}

/// Modules of the same class may share code that was made of one of them: which one runs is known of a call alone.
std::optional<std::string> module_of(const std::vector<SourceFrame>& stack, const LiveNames& names) {
    std::optional<std::string> traced;
    for (const SourceFrame& frame : stack) {
        if (frame.self == nullptr) continue;
        const auto it = names.modules.find(frame.self);
        if (it == names.modules.end()) continue;
        if (!frame.traced) return traced && traced->rfind(it->second + ".", 0) == 0 ? traced : it->second;
        if (!traced) traced = it->second;
    }
    return std::nullopt;
}

/// The innermost module on the stack has parameters, its own or those of modules in it.
bool in_layer(const std::vector<SourceFrame>& stack, const LiveNames& names) {
    const std::optional<std::string> module = module_of(stack, names);
    if (!module) return false;
    const std::string prefix = *module + ".";
    return std::any_of(names.tensors.begin(), names.tensors.end(), [&](const auto& item) {
        return item.second.role == LiveNames::TensorName::Role::Parameter && item.second.name.rfind(prefix, 0) == 0;
    });
}

FindingKind kind_of(const Birth& birth) {
    if (birth.kind == 0) return birth.near_overflow ? FindingKind::Overflow : FindingKind::Underflow;
    return birth.kind == kNaN ? FindingKind::NaN : FindingKind::Inf;
}

/// Root causes, most likely first; U is an answer too. What is behind the first goes into the evidence, what to change
/// into the help.
void rank(Finding& finding, const Birth& birth, bool own_backward, bool in_layer) {
    Features features = birth.features;
    features.in_layer = in_layer;
    features.mechanism = finding.mechanism;
    features.phase = finding.phase;
    features.met = birth.met;
    features.own_backward = own_backward;
    features.first_run = !features.replayed && !birth.history.empty() &&
                         std::none_of(birth.history.begin(), birth.history.end(), [&](const auto& past) {
                             return past.step < birth.step && past.absmax.has_value();
                         });
    Ranking ranking = rank_causes(features);
    finding.category = ranking.guesses.front();
    for (size_t i = 1; i < ranking.guesses.size() && i <= 3; ++i) {
        if (ranking.guesses[i].confidence >= 0.01) finding.alternatives.push_back(ranking.guesses[i]);
    }
    finding.weighed = std::move(ranking.weighed);
    for (std::string& fact : ranking.facts) finding.evidence.push_back(std::move(fact));
    finding.help = advice(features, finding.category.id, finding.mechanism);
}

/// Some frame before `entry` is of the program's or a library's file and not of what torch made of it.
bool runs_own_code(const std::vector<SourceFrame>& stack, size_t entry, const PlaceFinder& places) {
    return std::any_of(stack.begin(), stack.begin() + static_cast<std::ptrdiff_t>(entry),
                       [&](const SourceFrame& frame) {
                           const Origin whose = places.origin(frame);
                           return !frame.traced && (whose == Origin::Library || whose == Origin::User);
                       });
}

/// The frame to look at, and for a backward birth the place where backward() was called. True when a frame of the
/// program's own ran inside the autograd node.
bool locate(Finding& finding, const EscapedBirth& escaped, const StackSource& stacks, const LiveNames& names,
            const PlaceFinder& places) {
    const Birth& birth = escaped.birth;
    const std::vector<SourceFrame> stack = with_traced_frames(stacks.resolve(birth.stack), names.traced, places);
    const size_t entry = PlaceFinder::backward_entry(stack);
    const SourceFrame* at = places.innermost(stack);
    const SourceFrame* own = places.innermost_user(stack);
    bool own_backward = false;
    finding.stack = frames_of(stack);
    finding.module = module_of(stack, names);
    if (birth.left_finite != 0) {
        const auto written = with_traced_frames(stacks.resolve(birth.left_finite), names.traced, places);
        if (const SourceFrame* line = places.innermost(written)) finding.written_location = places.place(*line);
    }
    if (!birth.node.empty()) {
        finding.stack.insert(finding.stack.begin(), StackFrame{"autograd", birth.node, std::nullopt, std::nullopt});
        const SourceFrame* inside = entry < stack.size() ? places.innermost(stack, 0, entry) : nullptr;
        const SourceFrame* called = places.innermost(stack, entry < stack.size() ? entry + 1 : 0);
        if (called != nullptr) finding.backward_location = places.place(*called);
        // torch made that code out of the forward's lines: the program wrote no backward.
        own_backward = inside != nullptr && runs_own_code(stack, entry, places);
        const bool traced = inside != nullptr && !own_backward;
        at = inside != nullptr ? inside : called;
        own = inside != nullptr ? places.innermost_user(stack, 0, entry) : places.innermost_user(stack);
        if (birth.has_forward) {
            const std::vector<SourceFrame> made =
                with_traced_frames(stacks.resolve(birth.forward_stack), names.traced, places);
            ForwardOp forward;
            forward.op = birth.forward_op;
            forward.node = birth.node;
            forward.module = module_of(made, names);
            forward.stack = frames_of(made);
            const SourceFrame* line = traced ? inside : places.innermost(made);
            if (line != nullptr) forward.location = places.place(*line);
            if (!own_backward && line != nullptr) {
                finding.location = forward.location;
                const SourceFrame* user = traced ? own : places.innermost_user(made);
                if (user != nullptr) finding.user_location = places.place(*user);
                finding.module = forward.module;
                finding.forward = std::move(forward);
                return false;
            }
            finding.forward = std::move(forward);
        }
    }
    if (at != nullptr) finding.location = places.place(*at);
    if (own != nullptr) finding.user_location = places.place(*own);
    if (birth.made_at) {  // the stack is that of the place where the tensor arrived
        if (own == nullptr) finding.user_location = finding.location;
        finding.location = birth.made_at;
        finding.location->code = source_line(birth.made_at->file, birth.made_at->line);
        finding.stack.insert(finding.stack.begin(),
                             StackFrame{"python", birth.made_at->function, birth.made_at->file, birth.made_at->line});
    }
    return own_backward;
}

void add_ranges(std::vector<StackFrame>& stack, const std::vector<std::string>& outermost_first) {
    for (auto name = outermost_first.rbegin(); name != outermost_first.rend(); ++name)
        stack.push_back({kRangeFrame, *name, std::nullopt, std::nullopt});
}

/// Inductor names a kernel after the ops that it fuses: cpp_fused__softmax_log_0. One that has the name of a product
/// may do no more than prepare an operand of it: products are a library's.
bool fuses(const std::string& kernel, const std::string& op) {
    const OpTraits& traits = traits_of(op);
    const bool of_library = is_matrix_product(traits) || traits.is({Form::Convolve, Form::ConvolveBackward});
    return !of_library && has_op_name(kernel, plain_op_name(op));
}

/// Kernels of the compiled region that the op is of. Where many have such an op, which one ran it is not known.
void add_kernels(Finding& finding, const Birth& birth, const StackSource& stacks, const LiveNames& names) {
    if (names.kernels.empty()) return;
    constexpr size_t kMost = 3;
    const bool backward = !birth.node.empty();
    std::vector<StackFrame> fusing;
    for (const SourceFrame& frame : stacks.resolve(backward ? birth.forward_stack : birth.stack)) {
        const auto known = names.kernels.find(frame.file);
        if (known == names.kernels.end()) continue;
        for (const LiveNames::GeneratedKernel& kernel : known->second) {
            if (kernel.backward == backward && fuses(kernel.name, birth.op))
                fusing.push_back({kKernelFrame, kernel.name, kernel.file, kernel.line});
        }
    }
    if (fusing.size() <= kMost) finding.stack.insert(finding.stack.end(), fusing.begin(), fusing.end());
}

/// The lines around the line, where the file has that line: Python may keep another text of it.
void add_excerpt(Finding& finding, const Place& place) {
    constexpr int kAround = 4;
    if (!place.code || place.cell || place.line <= 0) return;
    const int first = std::max(place.line - kAround, 1);
    std::vector<std::string> lines = source_lines(place.file, first, place.line + kAround);
    const auto at = static_cast<size_t>(place.line - first);
    if (at >= lines.size() || source_line(place.file, place.line) != place.code) return;
    finding.excerpt_line = first;
    finding.excerpt = std::move(lines);
}

LastUse last_use(const LastMet& last, const StackSource& stacks, const LiveNames& names, const PlaceFinder& places) {
    LastUse made{last.fate, last.op, std::nullopt};
    const std::vector<SourceFrame> stack = with_traced_frames(stacks.resolve(last.stack), names.traced, places);
    if (const SourceFrame* at = places.innermost(stack)) made.location = places.place(*at);
    return made;
}

}  // namespace

std::string place_of_finding(const Finding& finding) {
    return kept_place_of(finding) + (finding.location ? ":" + std::to_string(finding.location->line) : "");
}

Finding build_finding(const EscapedBirth& escaped, const StackSource& stacks, const OpenRanges& ranges,
                      const LiveNames& names, const PlaceFinder& places) {
    const Birth& birth = escaped.birth;
    Finding finding;
    finding.mechanism = birth.mechanism != Mechanism::None ? birth.mechanism : Mechanism::DATA;
    finding.severity = escaped.severity;
    finding.kind = kind_of(birth);
    finding.op = birth.op;
    finding.phase = birth.phase;
    finding.step = birth.step;
    finding.seq = birth.seq;
    finding.outputs = birth.outputs;
    finding.inputs = birth.inputs;
    finding.launches = birth.launches;
    finding.evidence = birth.evidence;
    finding.history = birth.history;
    finding.chain = birth.chain;
    for (ChainLink& link : finding.chain) {
        const std::vector<SourceFrame> called = with_traced_frames(stacks.resolve(link.stack), names.traced, places);
        if (const SourceFrame* line = places.innermost(called)) link.location = places.place(*line);
        link.stack = KeptStack();
    }
    const bool own_backward = locate(finding, escaped, stacks, names, places);
    add_kernels(finding, birth, stacks, names);
    add_ranges(finding.stack, ranges.names(birth.ranges));
    if (finding.forward) add_ranges(finding.forward->stack, ranges.names(birth.forward_ranges));
    if (finding.user_location && finding.location && finding.user_location->file == finding.location->file &&
        finding.user_location->line == finding.location->line) {
        finding.user_location.reset();
    }
    if (finding.location) add_excerpt(finding, *finding.location);
    finding.happened = happened(birth);
    finding.escape = {escaped.into, std::nullopt, escaped.step, escaped.seq, std::nullopt};
    if (escaped.severity == Severity::Info) finding.escape.last = last_use(birth.last, stacks, names, places);
    finding.count = escaped.times;
    finding.received = birth.received;
    finding.collectives.reset();
    if (escaped.collectives) {
        finding.collectives.emplace();
        for (const auto& [group, count] : *escaped.collectives) finding.collectives->emplace(group->name, count);
    }
    const auto holder = names.tensors.find(birth.holder);
    const bool buffer = holder != names.tensors.end() && holder->second.role == LiveNames::TensorName::Role::Buffer;
    if (buffer && finding.mechanism == Mechanism::UNINIT) finding.phase = Phase::Load;
    if (const auto it = names.tensors.find(escaped.impl); it != names.tensors.end())
        finding.escape.name = it->second.name;
    rank(finding, birth, own_backward,
         in_layer(with_traced_frames(stacks.resolve(birth.stack), names.traced, places), names));
    finding.fingerprint = fingerprint_of(finding, places);
    return finding;
}

}  // namespace numsan
