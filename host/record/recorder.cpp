#include "host/record/recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>

#include "host/record/fields.h"

namespace numsan {

Recorder* the_recorder = nullptr;

namespace {

constexpr uint64_t kMostBytes = uint64_t(1) << 30;

std::string text_of(const std::string& path) {
    constexpr size_t kMost = 16 << 20;
    std::ifstream in(path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    return text.size() <= kMost ? text : std::string();
}

}  // namespace

Recorder* Recorder::start(const Options& options, const RunSummary& run, std::string& why) {
    std::unique_ptr<Recorder> made(new Recorder);
    std::string path = expand_path(options.record, path_facts(run));
    if (path[0] != '/') path = run.cwd + "/" + path;
    if (const std::optional<std::string> error = made->writer_.open(path, kMostBytes)) {
        why = "record: " + *error;
        return nullptr;
    }
    return the_recorder = made.release();  // never destroyed: threads may be inside it when the process ends
}

void Recorder::begin(Session& session, const SessionFacts& facts, const Options& options) {
    session_ = &session;
    RunFacts begun;
    begun.run = facts.run.value_or(RunSummary());
    begun.options = non_default(options);
    begun.torch_version = facts.torch_version;
    begun.torch_root = facts.torch_root;
    begun.standard_library = facts.standard_library;
    begun.python_version = facts.python_version;
    begun.blind_spots = facts.blind_spots;
    if (!options.allow.empty()) begun.allow_list = text_of(options.allow);
    if (const char* cache = std::getenv("TORCHINDUCTOR_CACHE_DIR")) begun.inductor_cache = cache;
    writer_.add(RecordKind::Run, begun);
    writer_.flush();
    on_.store(true, std::memory_order_release);
}

Recorder::Thread& Recorder::this_thread() noexcept {
    static thread_local constinit Thread mine{};
    return mine;
}

/// Its number, and a note at its end, after which the same number is never used.
uint32_t Recorder::number_of(Thread& thread) {
    struct End {
        bool seen = false;
        ~End() {
            Thread& mine = this_thread();
            mine.ended = true;
            Recorder& r = *the_recorder;
            if (!seen || !r.on() || mine.inside || mine.number == 0) return;
            const std::lock_guard<std::mutex> lock(r.mutex_);
            if (!r.on()) return;
            try {
                r.writer_.add(RecordKind::ThreadEnd, mine.number);
            } catch (...) {
                // It stays as it is until the end of the replay.
            }
            mine.number = 0;
        }
    };
    if (thread.number != 0 && thread.numbered_by == this) return thread.number;
    thread.numbered_by = this;
    if (!thread.ended) {
        static thread_local End end;
        end.seen = true;
    }
    return thread.number = ++threads_;
}

void Recorder::begin_segment(Thread& thread, Head head) noexcept {
    if (!on()) return;
    try {
        segment_ = {};
        segment_.thread = number_of(thread);
        segment_.head = head;
    } catch (...) {
        stop("out of memory");
    }
}

void Recorder::end_segment(Head leaves_by) noexcept {
    if (!on()) return;
    try {
        segment_.leaves_by = leaves_by;
        writer_.add(RecordKind::Segment, segment_);
        writer_.flush_sometimes();
        if (!writer_.failure().empty()) stop(writer_.failure());
    } catch (...) {
        stop("out of memory");
    }
}

Recorder::Turn::Turn(Recorder& recorder, Head head) noexcept
    : recorder_(recorder), thread_(this_thread()), before_(thread_) {
    if (!recorder_.on()) return;
    if (thread_.inside) {  // its place in the order is not known
        recorder_.stop("an operator ran inside of the scan of another one");
        return;
    }
    recorder_.mutex_.lock();
    if (!recorder_.on()) {
        recorder_.mutex_.unlock();
        return;
    }
    taken_ = thread_.inside = true;
    recorder_.begin_segment(thread_, head);
}

Recorder::Turn::~Turn() {
    if (!taken_) return;
    recorder_.end_segment(Head::None);
    thread_.stack = before_.stack;
    thread_.autograd_facts = before_.autograd_facts;
    thread_.inside = false;
    recorder_.mutex_.unlock();
}

Recorder::Outside::Outside(Recorder& recorder, Head head) noexcept
    : recorder_(recorder),
      thread_(this_thread()),
      head_(head),
      stack_(thread_.stack),
      autograd_facts_(thread_.autograd_facts) {
    if (!thread_.inside) return;
    away_ = true;
    recorder_.end_segment(head);
    thread_.inside = false;
    recorder_.mutex_.unlock();
}

void Recorder::Outside::over() noexcept {
    if (!away_) return;
    away_ = false;
    recorder_.mutex_.lock();
    thread_.inside = true;
    thread_.stack = stack_;
    thread_.autograd_facts = autograd_facts_;
    recorder_.begin_segment(thread_, head_);
}

Recorder::Outside::~Outside() { over(); }

/// On a thread that has the lock.
void Recorder::stop(const std::string& why, bool at_device) noexcept {
    try {
        why_stopped_ = "the recording ends before the run: " + why;
        if (at_device) writer_.add(RecordKind::Stopped, why);
        writer_.close();
        on_.store(false, std::memory_order_release);
        session_->reporter().say("record: " + writer_.path() + " ends before the run: " + why);
    } catch (...) {
        on_.store(false, std::memory_order_release);
    }
}

void Recorder::write_end(int status) noexcept {
    if (!on()) return;
    try {
        writer_.add(RecordKind::End, RunEnd{status, session_->reporter().json()});
        writer_.flush();
        if (!writer_.failure().empty()) return stop(writer_.failure());
    } catch (...) {
        return stop("out of memory");
    }
    on_.store(false, std::memory_order_release);
    writer_.close();
}

/// One that begins while the thread is inside the session is of what numsan itself runs.
void Recorder::range(const RangeEvent& event) {
    if (this_thread().inside) return session_->range(event);
    const Turn turn(*this, Head::Range);
    take([&](Segment& segment) {
        segment.range = event.kind;
        segment.range_key = event.key;
        segment.range_ignored = event.ignored;
        segment.text = event.name;
    });
    session_->range(event);
}

void Recorder::decide_pending(bool failed) {
    const Turn turn(*this, Head::DecidePending);
    take([&](Segment& segment) { segment.status = failed; });
    session_->decide_pending(failed);
}

int Recorder::finish(int status) {
    int wanted = status;
    {
        const Turn turn(*this, Head::Finish);
        take([&](Segment& segment) { segment.status = status; });
        wanted = session_->finish(status);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    write_end(status);
    return wanted;
}

void Recorder::before_fork() {
    if (!this_thread().inside) mutex_.lock();
}

void Recorder::after_fork_in_parent() {
    if (!this_thread().inside) mutex_.unlock();
}

void Recorder::after_fork_in_child() {
    on_.store(false, std::memory_order_release);
    writer_.abandon();
    if (!this_thread().inside) mutex_.unlock();
}

}  // namespace numsan
