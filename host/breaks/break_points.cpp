#include "host/breaks/break_points.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace numsan {
namespace {

/// What the program wrote down, or what arrived, was not computed here: it is something to stop at when it does harm.
bool is_made_by_op(const Birth& birth) {
    return birth.kind != 0 && !birth.intended && !birth.ignored && birth.op != "external" &&
           birth.mechanism != Mechanism::DATA && birth.mechanism != Mechanism::UNINIT && !birth.made_at;
}

/// Whether the op wrote the memory of this operand or result.
bool is_written(const OpEvent& event, const TensorView& view) {
    return std::any_of(event.outputs, event.outputs + event.output_count, [&](const TensorView& output) {
        return (output.flags & kWritten) != 0 && output.storage == view.storage;
    });
}

std::vector<Break::Operand> operands_of(const OpEvent& event, const TensorView* views, int32_t count) {
    std::vector<Break::Operand> operands;
    operands.reserve(static_cast<size_t>(count));
    for (int32_t i = 0; i < count; ++i) operands.push_back({views[i].impl, is_written(event, views[i])});
    return operands;
}

void set_due(ThreadState& thread, std::unique_ptr<Break> due) { delete std::exchange(thread.due, due.release()); }

}  // namespace

HeldReference::HeldReference(const HoldApi& api, const OpContext& context) : api_(&api) {
    if (context.node == nullptr || api.keep_forward == nullptr) return;
    call_ = api.keep_forward(context.node_thread, number(context.node_sequence));
}

BreakMode break_mode() noexcept {
    const char* const named = std::getenv("PYTHONBREAKPOINT");
    if (named != nullptr && std::strcmp(named, "0") == 0) return BreakMode::Off;
    if (named != nullptr && *named != '\0') return BreakMode::Stop;
    return isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0 ? BreakMode::Stop : BreakMode::Raise;
}

BreakPoints::BreakPoints(Verdict& verdict, FindingOf finding_of, BreakMode (*mode)() noexcept)
    : verdict_(verdict), finding_of_(std::move(finding_of)), mode_(mode) {
    verdict.show_births();
}

BreakMode BreakPoints::mode_now() const noexcept {
    const BreakMode mode = mode_();
    return mode == BreakMode::Stop && alone_.load(std::memory_order_relaxed) ? BreakMode::Raise : mode;
}

void BreakPoints::hold(BirthId birth, HeldReference call) {
    const std::lock_guard lock(mutex_);
    held_[birth] = std::move(call);
    int64_t bytes = 0;
    for (const auto& [id, held] : held_) bytes += held.bytes();
    while (held_.size() > kMostHeld || (bytes > kMostHeldBytes && held_.size() > 1)) {
        bytes -= held_.begin()->second.bytes();
        held_.erase(held_.begin());
    }
}

HeldReference BreakPoints::take_held(BirthId birth) {
    const std::lock_guard lock(mutex_);
    const auto it = held_.find(birth);
    if (it == held_.end()) return {};
    HeldReference call = std::move(it->second);
    held_.erase(it);
    return call;
}

bool BreakPoints::was_shown(BirthId birth) const {
    const std::lock_guard lock(mutex_);
    return shown_.count(birth) != 0;
}

/// Several births of one finding may escape at once, as those of one update of an optimizer do.
bool BreakPoints::is_first_of(const Finding& finding) {
    const std::lock_guard lock(mutex_);
    return findings_.insert(finding.id).second;
}

void BreakPoints::born(ThreadState& thread, const OpEvent& event, const OpContext& context, const Outcome& outcome) {
    if (outcome.born.empty()) return;
    const BreakMode mode = mode_now();
    if (mode == BreakMode::Off) return;
    for (const BirthId id : outcome.born) {
        std::optional<Birth> birth = verdict_.birth(id);
        if (!birth || birth->seq != context.seq || !is_made_by_op(*birth)) continue;
        if (mode == BreakMode::Stop) {
            const std::lock_guard lock(mutex_);
            if (context.stack == 0 || passed_stacks_.count(context.stack) != 0) continue;
        }
        HeldReference call(hold_);
        if (mode == BreakMode::Raise) {
            hold(id, std::move(call));
            continue;
        }
        auto due = std::make_unique<Break>();
        due->birth = std::move(*birth);
        due->stack = context.stack;
        due->scaled = due->birth.phase == Phase::Backward && due->birth.mechanism == Mechanism::OVF;
        due->inputs = operands_of(event, event.inputs, event.input_count);
        due->outputs = operands_of(event, event.outputs, event.output_count);
        due->held = std::move(call);
        due->forward = HeldReference(hold_, context);
        due->node = context.node != nullptr ? context.node : "";
        return set_due(thread, std::move(due));
    }
}

void BreakPoints::published(ThreadState& thread, const Outcome& outcome, StackId stack) {
    for (const EscapedBirth& escaped : outcome.escaped) {
        if (escaped.again || escaped.severity != Severity::Error || escaped.birth.kind == 0) continue;
        if (escaped.birth.repeats != 0 && was_shown(escaped.birth.repeats)) continue;
        std::optional<Finding> finding = finding_of_(escaped.birth.id);
        if (!finding) continue;
        const BreakMode mode = mode_now();
        const bool due_already = thread.due != nullptr && thread.due->birth.id == escaped.birth.id;
        if (mode == BreakMode::Off || (thread.due != nullptr && !due_already)) continue;
        if (!is_first_of(*finding) || was_shown(escaped.birth.id)) continue;
        if (due_already) {
            thread.due->finding = std::move(finding);
            return;
        }
        auto due = std::make_unique<Break>();
        due->raises = mode == BreakMode::Raise;
        due->birth = escaped.birth;
        due->finding = std::move(finding);
        due->stack = stack;
        due->held = take_held(escaped.birth.id);
        if (stack != 0) return set_due(thread, std::move(due));
        {
            const std::lock_guard lock(mutex_);
            if (queue_.size() >= kMostQueued) return;
            queue_.push_back(std::move(due));
        }
        if (queued_ != nullptr) queued_();
        return;
    }
}

std::unique_ptr<Break> BreakPoints::take(ThreadState& thread) noexcept {
    return std::unique_ptr<Break>(std::exchange(thread.due, nullptr));
}

std::unique_ptr<Break> BreakPoints::take_queued() {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) return nullptr;
    std::unique_ptr<Break> due = std::move(queue_.front());
    queue_.pop_front();
    return due;
}

bool BreakPoints::stop_at(const std::string& place, const Break& due) {
    constexpr size_t kMost = 1 << 14;
    const std::lock_guard lock(mutex_);
    if (passed_stacks_.size() >= kMost) passed_stacks_.clear();
    if (shown_.size() >= kMost) shown_.clear();
    if (!due.finding) passed_stacks_.insert(due.stack);
    if (!places_.insert(place).second) return false;
    shown_.insert(due.birth.id);
    return true;
}

void BreakPoints::again(const std::string& place) {
    const std::lock_guard lock(mutex_);
    places_.erase(place);
    passed_stacks_.clear();
}

void BreakPoints::leave_to_scaler(const std::string& place, const Break& due) {
    const std::lock_guard lock(mutex_);
    places_.erase(place);
    shown_.erase(due.birth.id);
}

void BreakPoints::ask_nobody(Break& due) {
    alone_.store(true, std::memory_order_relaxed);
    due.raises = due.finding.has_value();
    if (!due.raises) hold(due.birth.id, std::move(due.held));
}

void BreakPoints::pass_over(const Break& due) {
    const std::lock_guard lock(mutex_);
    if (!due.finding) passed_stacks_.insert(due.stack);
}

}  // namespace numsan
