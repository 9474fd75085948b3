// Writes down all that crosses a session's borders, so that the same code makes the same report of it again.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "host/base/scanner.h"
#include "host/options/options.h"
#include "host/record/record_writer.h"
#include "host/record/segment.h"
#include "host/session/session.h"

namespace numsan {

/// One in a process, never destroyed. Threads come into the session one after the other while it writes; where the
/// session asks the program, which may wait for another thread, the next one gets its turn meanwhile. [MT]
///
/// Recorded are the calls into the session and what it was answered: by the scanner, single elements that it read, what
/// is alive by which name, notes of other processes, the rank. Not recorded are devices: their scans answer at times of
/// their own. A recording ends at the first operation on a device that is scanned, and says so.
class Recorder {
  public:
    /// Null, and in `why` one line, when the file cannot be written.
    static Recorder* start(const Options& options, const RunSummary& run, std::string& why);

    // Before the session is made: what it is given instead of these.
    const Scanner& over(const Scanner& scanner);
    StackSource& over(StackSource& stacks);
    void over(SessionFacts& facts);
    // Before the first event.
    const CoreApi& over(const CoreApi& core);
    MakeDeviceScanner over(MakeDeviceScanner make);
    void (*over(void (*add_coverage)(RunSummary&)))(RunSummary&);
    AskRank over(AskRank ask);
    /// The first record, then events. `facts` as the session was given them.
    void begin(Session& session, const SessionFacts& facts, const Options& options);

    // What a session is asked besides CoreApi. Lives as long as the process: `adapter`.
    void use(const AdapterApi& adapter);
    void range(const RangeEvent& event);
    void decide_pending(bool failed);
    int finish(int status);

    // Around those of the session.
    void before_fork();
    void after_fork_in_parent();
    /// A child is not recorded: it has no recording of what came before it.
    void after_fork_in_child();

  private:
    class Turn;
    class Outside;
    class RecordingScanner;
    class RecordingStacks;
    class RecordingExchange;
    struct Thread;
    struct Calls;

    Recorder() = default;
    bool on() const noexcept { return on_.load(std::memory_order_acquire); }
    static Thread& this_thread() noexcept;
    uint32_t number_of(Thread& thread);
    void begin_segment(Thread& thread, Head head) noexcept;
    void end_segment(Head leaves_by) noexcept;
    template <class Take>
    void take(Take&& what) noexcept;
    static void take_views(std::vector<RecordedView>& into, const TensorView* views, int32_t count);
    void take_op(const OpEvent& event, StackId stack);
    void take_node(const NodeEvent& event, StackId stack);
    uint32_t op_number(const OpInfo* op);
    void know_stack(StackId stack);
    TensorAnswer& answer_about(const TensorView& tensor);
    void stop(const std::string& why, bool at_device = false) noexcept;
    void write_end(int status) noexcept;
    static void leave_by_recording(SessionFacts& facts);

    std::mutex mutex_;  ///< of what follows; held while a thread is inside the session
    std::atomic<bool> on_{false};
    RecordWriter writer_;
    Segment segment_;
    uint32_t threads_ = 0;
    std::unordered_map<const OpInfo*, uint32_t> ops_;
    std::unordered_set<StackId> stacks_known_;
    std::string why_stopped_;  ///< written before on_ becomes false
    Session* session_ = nullptr;
    StackSource* stacks_ = nullptr;     ///< the program's
    RecordingStacks* shown_ = nullptr;  ///< what the session has of them
    const CoreApi* core_ = nullptr;
    const AdapterApi* adapter_ = nullptr;
    AdapterApi shown_adapter_{};
    MakeDeviceScanner make_ = nullptr;
    void (*add_coverage_)(RunSummary&) = nullptr;
    AskRank ask_rank_ = nullptr;
};

// How threads take turns while a recording is made: within host/record only.

/// The process's recorder: the functions of the C boundary have nothing else to find it by.
extern Recorder* the_recorder;

/// What the recorder keeps of a thread. Trivially destructible: calls may come while the thread ends.
struct Recorder::Thread {
    const Recorder* numbered_by;
    uint32_t number;  ///< 0: not seen yet
    bool ended;
    bool inside;    ///< the session, by its turn: it has the lock
    StackId stack;  ///< of the call it is inside of, asked for before the turn: that may wait for other threads
    uint32_t (*autograd_facts)(const void* impl, bool may_wait);
};

/// A call into the session. Not taken: the call goes on unrecorded.
class Recorder::Turn {
  public:
    Turn(Recorder& recorder, Head head) noexcept;
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return taken_; }
    void has(StackId stack) { thread_.stack = stack; }
    void has(uint32_t (*autograd_facts)(const void*, bool)) { thread_.autograd_facts = autograd_facts; }

  private:
    Recorder& recorder_;
    Thread& thread_;
    const Thread before_;  ///< this may be inside a call that the session made
    bool taken_ = false;
};

/// A call that the session makes, of what may wait for other threads or run the program's code: others have their turn.
/// take() says what it returned, once it is over.
class Recorder::Outside {
  public:
    Outside(Recorder& recorder, Head head) noexcept;
    ~Outside();
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

    void over() noexcept;

  private:
    Recorder& recorder_;
    Thread& thread_;
    const Head head_;
    const StackId stack_;
    uint32_t (*const autograd_facts_)(const void* impl, bool may_wait);
    bool away_ = false;
};

/// Adds to the segment that is being recorded. What fails ends the recording, never the program.
template <class Take>
void Recorder::take(Take&& what) noexcept {
    if (!on() || !this_thread().inside) return;
    try {
        what(segment_);
    } catch (...) {
        stop("out of memory");
    }
}

}  // namespace numsan
