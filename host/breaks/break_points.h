// Where a program stops with the option `break`, and what it raises instead where nobody can be asked: decided here.
// Carried out by who knows the interpreter.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/event/thread_state.h"
#include "host/finding/finding.h"
#include "host/stacks/stack_source.h"
#include "host/track/op_context.h"
#include "host/verdict/verdict.h"

namespace numsan {

enum class BreakMode : uint8_t {
    Off,    ///< PYTHONBREAKPOINT=0: breakpoint() does nothing, either
    Stop,   ///< somebody sits at a terminal, or PYTHONBREAKPOINT names a debugger
    Raise,  ///< nobody does
};

/// Of this process as it is now: a child of multiprocessing has no terminal on its stdin. [MT]
BreakMode break_mode() noexcept;

/// A reference to a call that is kept, given back at the end.
class HeldReference {
  public:
    HeldReference() = default;
    /// Within op_end.
    explicit HeldReference(const HoldApi& api) : api_(&api), call_(api.keep != nullptr ? api.keep() : nullptr) {}
    /// Of the forward op of the node that runs; of nothing where none does.
    HeldReference(const HoldApi& api, const OpContext& context);
    ~HeldReference() {
        if (call_ != nullptr) api_->drop(call_);
    }
    HeldReference(HeldReference&& other) noexcept : api_(other.api_), call_(std::exchange(other.call_, nullptr)) {}
    HeldReference& operator=(HeldReference&& other) noexcept {
        std::swap(api_, other.api_);
        std::swap(call_, other.call_);
        return *this;
    }
    const HeldCall* call() const { return call_; }
    const HeldView* view() const { return call_ != nullptr ? api_->view(call_) : nullptr; }
    int64_t bytes() const { return call_ != nullptr ? api_->bytes(call_) : 0; }

  private:
    const HoldApi* api_ = nullptr;
    HeldCall* call_ = nullptr;
};

/// One stop, or one exception.
struct Break {
    struct Operand {
        const void* impl;
        bool written;
    };
    bool raises = false;
    Birth birth;
    std::optional<Finding> finding;        ///< it is certain; else it is not known yet what becomes of the birth
    StackId stack = 0;                     ///< of the op, when it was the thread's last one
    bool scaled = false;                   ///< of a backward pass: a loss scaler may want it
    std::vector<Operand> inputs, outputs;  ///< alive until the op that made the birth has returned; empty after that
    HeldReference held;
    HeldReference forward;  ///< of the forward op, for a backward pass, where somebody may ask for it
    std::string node;       ///< of autograd's, in which the op ran; empty: in none
};

/// [MT] No member calls into the host program or takes another lock than its own, the verdict's and, in published(),
/// the one that `finding_of` takes. May throw std::bad_alloc where not noexcept.
class BreakPoints {
  public:
    /// What a birth is reported as; nothing where the allow-list has it, or where there was no room.
    using FindingOf = std::function<std::optional<Finding>(BirthId)>;
    /// `mode` is asked at every birth. What it is made with outlives it.
    BreakPoints(Verdict& verdict, FindingOf finding_of, BreakMode (*mode)() noexcept = break_mode);

    void use(const HoldApi& hold) noexcept { hold_ = hold; }
    /// Called when a thread that runs no Python has put a break into the queue; before the first event.
    void use(void (*queued)()) noexcept { queued_ = queued; }

    /// An op has made those births. Within op_end, before published().
    void born(ThreadState& thread, const OpEvent& event, const OpContext& context, const Outcome& outcome);
    /// What escaped is in the report now. `stack`: of the calling thread, 0 where it runs no Python.
    void published(ThreadState& thread, const Outcome& outcome, StackId stack);

    /// What is due on the thread; null: nothing.
    static std::unique_ptr<Break> take(ThreadState& thread) noexcept;

    /// What a thread without Python has left; null: nothing.
    std::unique_ptr<Break> take_queued();

    /// The program stops there now. False: it has stopped there before. `place` is a file and a line, or what else is
    /// one line to its reader.
    bool stop_at(const std::string& place, const Break& due);
    /// It will stop there again.
    void again(const std::string& place);
    /// Nothing of this stack's is asked about any more: its line is in the allow-list.
    void pass_over(const Break& due);
    /// Nobody is there after all, and in this process, from now on, the program raises.
    void ask_nobody(Break& due);
    /// It did not stop after all: a finding of that birth may.
    void leave_to_scaler(const std::string& place, const Break& due);

    /// Held over a fork, so that the child finds it free and whole.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    /// In a forked child, which counts its findings from the first.
    void begin_child() { findings_.clear(); }

  private:
    static constexpr size_t kMostQueued = 16;
    static constexpr size_t kMostHeld = 64;
    static constexpr int64_t kMostHeldBytes = int64_t(1) << 28;

    BreakMode mode_now() const noexcept;
    void hold(BirthId birth, HeldReference call);
    HeldReference take_held(BirthId birth);
    bool was_shown(BirthId birth) const;
    bool is_first_of(const Finding& finding);

    Verdict& verdict_;
    const FindingOf finding_of_;
    BreakMode (*mode_)() noexcept;
    std::atomic<bool> alone_{false};  ///< nobody is there, whatever `mode_` says
    HoldApi hold_{};
    void (*queued_)() = nullptr;
    mutable std::mutex mutex_;
    std::deque<std::unique_ptr<Break>> queue_;
    std::set<std::string> places_;               ///< where it has stopped
    std::unordered_set<StackId> passed_stacks_;  ///< at which it does not stop any more
    std::set<BirthId> shown_;                    ///< births at which it has stopped
    std::set<std::string> findings_;             ///< ids of those that were taken up
    std::map<BirthId, HeldReference> held_;      ///< of births that may escape: the newest
};

}  // namespace numsan
