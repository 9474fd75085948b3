#include "host/record/player.h"

#include <algorithm>
#include <thread>

#include "host/record/fields.h"

namespace numsan {

Player::Worker*& Player::current() {
    static thread_local Worker* mine = nullptr;
    return mine;
}

void Player::play(Session& session, StackSource& stacks) {
    session_ = &session;
    stacks_ = &stacks;
    pass_on();
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return over_; });
    if (error_) std::rethrow_exception(error_);
}

Player::Worker& Player::worker(uint32_t number) {
    std::unique_ptr<Worker>& known = workers_[number];
    if (known != nullptr && known->ended) throw reader_.damaged("a thread goes on after its end");
    if (known == nullptr) {
        constexpr size_t kMostThreads = 4096;
        if (workers_.size() > kMostThreads) throw reader_.damaged("too many threads");
        known = std::make_unique<Worker>();
        known->number = number;
        std::thread([this, &me = *known] { run(me); }).detach();
    }
    return *known;
}

/// Reads up to the next segment; whose it is has the turn.
void Player::advance() {
    while (reader_.next()) {
        switch (reader_.kind()) {
            case RecordKind::Op: {
                RecordedOp& op = ops_.emplace_back();
                reader_.read(op);
                infos_.push_back({op.name.c_str(), op.overload.c_str(), op.op_class, op.mutates, op.id, op.integer_op});
                break;
            }
            case RecordKind::Stack: {
                RecordedStack stack;
                reader_.read(stack);
                known_stacks_[stack.id] = std::move(stack);
                break;
            }
            case RecordKind::Segment:
                next_ = {};
                reader_.read(next_);
                if ((next_.head == Head::OpEnd || next_.head == Head::OpFailed) && next_.op >= infos_.size())
                    throw reader_.damaged("an operator that was not written before");
                turn_ = &worker(next_.thread);
                return;
            case RecordKind::ThreadEnd: {
                uint32_t number = 0;
                reader_.read(number);
                const auto it = workers_.find(number);
                if (it == workers_.end()) break;
                it->second->ended = true;
                it->second->awakened.notify_one();
                break;
            }
            case RecordKind::Stopped: reader_.read(result_.why_no_end); break;
            case RecordKind::End: {
                RunEnd& end = result_.end.emplace();
                reader_.read(end);
                over_ = true;
                return;
            }
            default: throw reader_.damaged("a record at a place where none of its kind is");
        }
    }
    over_ = true;
}

void Player::pass_on() {
    const std::lock_guard lock(mutex_);
    turn_ = nullptr;
    try {
        advance();
    } catch (...) {
        error_ = std::current_exception();
        over_ = true;
    }
    if (over_) {
        turn_ = nullptr;
        ended_.notify_one();
    } else if (turn_ != current()) {
        turn_->awakened.notify_one();
    }
}

/// False: its thread has ended. Where the recording ends no thread is awakened.
bool Player::await(Worker& me) {
    std::unique_lock lock(mutex_);
    me.awakened.wait(lock, [&] { return turn_ == &me || me.ended; });
    return turn_ == &me;
}

void Player::run(Worker& me) {
    current() = &me;
    while (await(me)) {
        play_call(me);
        pass_on();
    }
}

void Player::play_call(Worker& me) {
    if (is_return(next_.head)) return;  // of a call that the session did not make this time
    Frame& frame = me.frames.emplace_back();
    frame.call = std::move(next_);
    frame.leaves_by = frame.call.leaves_by;
    ++result_.calls;
    enter(frame.call);
    me.frames.pop_back();
}

const Segment* Player::outside(Head head) {
    Worker* me = current();
    if (me == nullptr || me->frames.empty()) return nullptr;
    if (me->frames.back().leaves_by != head) {
        miss("a call that was not made when the run was recorded");
        return nullptr;
    }
    for (;;) {
        pass_on();
        await(*me);
        Frame& frame = me->frames.back();
        if (!is_return(next_.head)) {
            play_call(*me);
            continue;
        }
        frame.leaves_by = next_.leaves_by;
        frame.returns.push_back(std::move(next_));
        return frame.returns.back().head == head ? &frame.returns.back() : nullptr;
    }
}

void Player::leave() {
    std::unique_lock lock(mutex_);
    try {
        advance();  // to the end, which comes next
    } catch (...) {
        error_ = std::current_exception();
    }
    turn_ = nullptr;
    over_ = true;
    ended_.notify_one();
    for (;;) ended_.wait(lock, [] { return false; });
}

/// As the adapter has them: one for each that is different, for ever.
const Communicator* Player::communicator(const std::optional<RecordedGroup>& group) {
    if (!group) return nullptr;
    const auto [it, added] = groups_.try_emplace(*group);
    const RecordedGroup& known = it->first;
    if (added)
        it->second = {known.name.c_str(), known.description.c_str(), known.rank, known.size,
                      known.ranks.empty() ? nullptr : known.ranks.data()};
    return &it->second;
}

void Player::op(const Segment& call) {
    std::vector<TensorView> views;
    views.reserve(call.inputs.size() + call.outputs.size());
    for (const auto* list : {&call.inputs, &call.outputs}) {
        for (const RecordedView& view : *list) views.push_back(view.view);
    }
    const CallFacts& facts = call.facts;
    OpEvent event{};
    event.op = &infos_[call.op];
    event.inputs = views.data();
    event.outputs = views.data() + call.inputs.size();
    event.input_count = static_cast<int32_t>(call.inputs.size());
    event.output_count = static_cast<int32_t>(call.outputs.size());
    event.thread = facts.thread;
    event.forward_sequence = facts.sequence;
    event.grad_enabled = facts.grad_enabled;
    event.infinite_scalar = facts.infinite_scalar;
    event.graph_task = facts.graph_task;
    event.autograd_facts = facts.asks_autograd_facts ? adapter_.autograd_facts : nullptr;
    event.scalar_count = static_cast<int32_t>(facts.scalars.size());
    event.scalars = facts.scalars.data();
    event.inner_ops_shown = facts.inner_ops_shown;
    event.on_device = facts.on_device;
    event.communicator = communicator(facts.group);
    event.queue = {const_cast<void*>(facts.queue_stream), facts.queue_device, facts.queue_known};
    if (call.head == Head::OpEnd)
        session_->op_end(event);
    else
        session_->op_failed(event);
}

void Player::node(const Segment& call) {
    std::vector<TensorView> inputs;
    for (const RecordedView& view : call.inputs) inputs.push_back(view.view);
    NodeEvent event{};
    event.name = call.text.c_str();
    event.sequence = call.facts.sequence;
    event.forward_thread = call.facts.thread;
    event.inputs = inputs.data();
    event.input_count = static_cast<int32_t>(inputs.size());
    event.variable = call.outputs.empty() ? nullptr : &call.outputs[0].view;
    event.graph_task = call.facts.graph_task;
    event.queue = {const_cast<void*>(call.facts.queue_stream), call.facts.queue_device, call.facts.queue_known};
    session_->node_begin(event);
}

void Player::enter(const Segment& call) {
    const char* text = call.text.c_str();
    switch (call.head) {
        case Head::Use:
            if (!adapters_.empty()) break;  // a session takes one
            kept_texts_.push_back(call.text);
            adapters_.push_back(adapter_.api(kept_texts_.back().c_str()));
            session_->use(adapters_.back());
            break;
        case Head::OpEnd:
        case Head::OpFailed: op(call); break;
        case Head::NodeBegin: node(call); break;
        case Head::NodeEnd: session_->node_end(); break;
        case Head::ScopeBegin: session_->scope_begin(text); break;
        case Head::ScopeEnd: session_->scope_end(text); break;
        case Head::BeforeWrite: session_->before_write(call.storage); break;
        case Head::BeforeWait: session_->before_wait(); break;
        case Head::Skipped:  // the session keeps the literal
            if (std::find(kept_texts_.begin(), kept_texts_.end(), call.text) == kept_texts_.end())
                kept_texts_.push_back(call.text);
            session_->skipped(std::find(kept_texts_.begin(), kept_texts_.end(), call.text)->c_str());
            break;
        case Head::Fail: session_->fail(text); break;
        case Head::Range: session_->range({call.range, call.range_ignored, call.range_key, text}); break;
        case Head::OwnThread:
            if (stacks_->on_own_thread != nullptr) stacks_->on_own_thread();
            break;
        case Head::DecidePending: session_->decide_pending(call.status != 0); break;
        case Head::Finish: session_->finish(call.status); break;
        default: break;  // returns: play_call() has them
    }
}

void Player::miss(const char* what) {
    if (result_.missing++ > 0) return;
    result_.first_missing = "call " + std::to_string(result_.calls) + ": " + what;
}

/// Of the call that the thread is inside of, the latest first, until one answers.
template <class Visit>
void Player::each_answers(Visit&& visit) {
    Worker* me = current();
    if (me == nullptr || me->frames.empty()) return;
    Frame& frame = me->frames.back();
    for (auto it = frame.returns.rbegin(); it != frame.returns.rend(); ++it) {
        if (visit(it->answers)) return;
    }
    visit(frame.call.answers);
}

const TensorAnswer* Player::about(const TensorView& t) {
    const TensorAnswer* found = nullptr;
    each_answers([&](const Answers& answers) {
        const auto is_it = [&](const TensorAnswer& answer) {
            const TensorView& own = answer.tensor.view;
            return own.data == t.data && own.numel == t.numel && own.dtype == t.dtype && own.ndim == t.ndim &&
                   std::equal(t.sizes, t.sizes + t.ndim, own.sizes) &&
                   std::equal(t.strides, t.strides + t.ndim, own.strides);
        };
        const auto it = std::find_if(answers.tensors.begin(), answers.tensors.end(), is_it);
        if (it != answers.tensors.end()) found = &*it;
        return found != nullptr;
    });
    return found;
}

const std::string* Player::element(const void* at) {
    const std::string* found = nullptr;
    each_answers([&](const Answers& answers) {
        const auto it = answers.elements.find(std::bit_cast<uint64_t>(at));
        if (it != answers.elements.end()) found = &it->second;
        return found != nullptr;
    });
    return found;
}

std::optional<BirthNote> Player::note() {
    Worker* me = current();
    if (me == nullptr || me->frames.empty()) return std::nullopt;
    Frame& frame = me->frames.back();
    size_t at = frame.next_note++;
    const std::vector<std::optional<BirthNote>>* notes = &frame.call.answers.notes;
    for (auto it = frame.returns.begin(); at >= notes->size(); ++it) {
        at -= notes->size();
        if (it == frame.returns.end()) {
            miss("a note of another process");
            return std::nullopt;
        }
        notes = &it->answers.notes;
    }
    return (*notes)[at];
}

bool Player::generated() {
    each_answers([&](const Answers& answers) {
        if (answers.generated) generated_ = *answers.generated;
        return answers.generated.has_value();
    });
    return generated_;
}

const CoverageAnswer* Player::coverage() {
    const CoverageAnswer* found = nullptr;
    each_answers([&](const Answers& answers) {
        if (answers.coverage) found = &*answers.coverage;
        return found != nullptr;
    });
    return found;
}

std::string Player::no_device() {
    std::string why;
    each_answers([&](const Answers& answers) {
        if (answers.no_device) why = *answers.no_device;
        return answers.no_device.has_value();
    });
    return why;
}

StackId Player::stack() const {
    const Worker* me = current();
    return me == nullptr || me->frames.empty() ? 0 : me->frames.back().call.stack;
}

const RecordedStack* Player::find(StackId id) const {
    const auto it = known_stacks_.find(id);
    return it == known_stacks_.end() ? nullptr : &it->second;
}

Replayed Player::result() {
    if (!result_.end && result_.why_no_end.empty() && reader_.is_cut())
        result_.why_no_end = "its last block, at byte " + std::to_string(reader_.cut_at()) + ", is not whole";
    return result_;
}

}  // namespace numsan
