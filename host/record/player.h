// Plays the segments of a recording on threads as they were recorded: within host/record only.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "host/record/record_reader.h"
#include "host/record/replayed.h"
#include "host/session/session.h"

namespace numsan {

/// A session keeps what it knows of a thread with the thread, and a call may wait in the middle for what other threads
/// do: so each recorded thread has one here. One runs at a time. Whoever has the turn reads the next segment, and keeps
/// the turn or hands it on. Never destroyed: threads may wait in it for ever.
class Player {
  public:
    /// What the session may ask in place of the adapter.
    struct Adapter {
        uint32_t (*autograd_facts)(const void* impl, bool may_wait);
        AdapterApi (*api)(const char* hook);
    };
    Player(RecordReader& reader, Adapter adapter) : reader_(reader), adapter_(adapter) {}

    /// Until there is no further segment.
    void play(Session& session, StackSource& stacks);
    /// What the recording's end says.
    Replayed result();

    // What the session asks, on the thread that has the turn. Nothing: the recording does not say.
    const TensorAnswer* about(const TensorView& tensor);
    const std::string* element(const void* at);
    std::optional<BirthNote> note();
    bool generated();
    const CoverageAnswer* coverage();
    std::string no_device();
    StackId stack() const;
    const RecordedStack* find(StackId id) const;
    /// Waits until the call that the session makes returned. Null: no such call was recorded here.
    const Segment* outside(Head head);
    /// The session would end the process: it waits for ever.
    [[noreturn]] void leave();
    void miss(const char* what);

  private:
    /// A call into the session, and what came of the calls that it made itself.
    struct Frame {
        Segment call;
        std::deque<Segment> returns;
        Head leaves_by = Head::None;
        size_t next_note = 0;
    };
    struct Worker {
        uint32_t number = 0;
        bool ended = false;
        std::deque<Frame> frames;
        std::condition_variable awakened;
    };

    static Worker*& current();
    Worker& worker(uint32_t number);
    void run(Worker& me);
    bool await(Worker& me);
    void advance();
    void pass_on();
    void play_call(Worker& me);
    void enter(const Segment& call);
    void op(const Segment& call);
    void node(const Segment& call);
    const Communicator* communicator(const std::optional<RecordedGroup>& group);
    template <class Visit>
    void each_answers(Visit&& visit);

    RecordReader& reader_;
    const Adapter adapter_;
    Session* session_ = nullptr;
    StackSource* stacks_ = nullptr;

    std::mutex mutex_;  ///< of the thread that has the turn
    std::condition_variable ended_;
    std::map<uint32_t, std::unique_ptr<Worker>> workers_;
    Worker* turn_ = nullptr;
    bool over_ = false;
    std::exception_ptr error_;

    // of the thread that has the turn
    Segment next_;
    std::deque<RecordedOp> ops_;
    std::deque<OpInfo> infos_;
    std::map<RecordedGroup, Communicator> groups_;  ///< they point into their keys
    std::map<StackId, RecordedStack> known_stacks_;
    std::deque<std::string> kept_texts_;
    std::deque<AdapterApi> adapters_;
    bool generated_ = false;
    Replayed result_;
};

}  // namespace numsan
