// What a session is answered: by the scanner, by stacks and names, by other processes.
#include <algorithm>

#include "host/base/tensor_memory.h"
#include "host/record/fields.h"
#include "host/record/recorder.h"

namespace numsan {
namespace {

bool same(const TensorView& a, const TensorView& b) {
    return a.data == b.data && a.numel == b.numel && a.dtype == b.dtype && a.ndim == b.ndim &&
           std::equal(a.sizes, a.sizes + a.ndim, b.sizes) && std::equal(a.strides, a.strides + a.ndim, b.strides);
}

}  // namespace

/// The place in the segment's own list, as the list grows.
TensorAnswer& Recorder::answer_about(const TensorView& tensor) {
    std::vector<TensorAnswer>& answers = segment_.answers.tensors;
    const size_t inputs = segment_.inputs.size();
    const auto of = [&](const TensorAnswer& answer) -> const TensorView& {
        if (answer.place == 0) return answer.tensor.view;
        const size_t place = answer.place - 1;
        return (place < inputs ? segment_.inputs[place] : segment_.outputs[place - inputs]).view;
    };
    const auto known = std::find_if(answers.rbegin(), answers.rend(),
                                    [&](const TensorAnswer& answer) { return same(of(answer), tensor); });
    if (known != answers.rend()) return *known;
    TensorAnswer& added = answers.emplace_back();
    const auto is_it = [&](const RecordedView& view) { return same(view.view, tensor); };
    if (const auto out = std::find_if(segment_.outputs.begin(), segment_.outputs.end(), is_it);
        out != segment_.outputs.end()) {
        added.place = static_cast<uint32_t>(inputs + size_t(out - segment_.outputs.begin()) + 1);
    } else if (const auto in = std::find_if(segment_.inputs.begin(), segment_.inputs.end(), is_it);
               in != segment_.inputs.end()) {
        added.place = static_cast<uint32_t>(in - segment_.inputs.begin() + 1);
    } else {
        added.tensor = RecordedView(tensor);
    }
    return added;
}

class Recorder::RecordingScanner final : public Scanner {
  public:
    RecordingScanner(Recorder& recorder, const Scanner& scanner) : recorder_(recorder), scanner_(scanner) {}

    /// One thread reads: those that could share the work may wait for their turn.
    Range range(const TensorView& tensor) const noexcept override {
        const Range found = scanner_.range(tensor);
        recorder_.take([&](Segment&) { recorder_.answer_about(tensor).range = found; });
        return found;
    }
    KindSet kinds(const TensorView& tensor) const noexcept override {
        const KindSet found = scanner_.kinds(tensor);
        recorder_.take([&](Segment&) { recorder_.answer_about(tensor).kinds = found; });
        return found;
    }
    Health health(const TensorView& tensor) const noexcept override {
        const Health found = scanner_.health(tensor);
        recorder_.take([&](Segment&) { recorder_.answer_about(tensor).health = found; });
        return found;
    }
    bool measures(const TensorView& tensor) const noexcept override { return scanner_.measures(tensor); }

    static void load(const void* at, void* into, size_t bytes) {
        std::memcpy(into, at, bytes);
        the_recorder->take([&](Segment& segment) {
            std::string& kept = segment.answers.elements[std::bit_cast<uint64_t>(at)];
            if (kept.size() < bytes) kept.assign(static_cast<const char*>(into), bytes);
        });
    }

  private:
    Recorder& recorder_;
    const Scanner& scanner_;
};

class Recorder::RecordingStacks final : public StackSource {
  public:
    RecordingStacks(Recorder& recorder, StackSource& stacks) : recorder_(recorder), stacks_(stacks) {
        stacks_.on_own_thread = begin_own_thread;
    }

    StackId capture() noexcept override {
        const Thread& thread = this_thread();
        return thread.inside ? thread.stack : stacks_.capture();
    }
    bool in_module(StackId stack) const noexcept override { return stacks_.in_module(stack); }
    std::vector<SourceFrame> resolve(StackId stack) const override { return stacks_.resolve(stack); }
    void keep(StackId stack) const noexcept override { stacks_.keep(stack); }
    void release(StackId stack) const noexcept override { stacks_.release(stack); }
    int64_t forgotten() const noexcept override { return stacks_.forgotten(); }
    LiveNames names(const TensorReader& reader) override {
        Outside outside(recorder_, Head::Names);
        LiveNames found = stacks_.names(reader);
        outside.over();
        recorder_.take([&](Segment& segment) { segment.names = found; });
        return found;
    }
    void lock() override { stacks_.lock(); }
    void unlock() override { stacks_.unlock(); }

    static void begin_own_thread() {
        const Turn turn(*the_recorder, Head::OwnThread);
        if (const auto say = the_recorder->shown_->on_own_thread) say();
    }
    static std::optional<ProcessRank> ask_rank(void (*)()) {
        Outside outside(*the_recorder, Head::Rank);
        const std::optional<ProcessRank> rank = the_recorder->ask_rank_(begin_own_thread);
        outside.over();
        the_recorder->take([&](Segment& segment) { segment.rank = rank; });
        return rank;
    }
    static bool generated_kernels() {
        const bool generated = runs_generated_kernels();
        the_recorder->take([&](Segment& segment) { segment.answers.generated = generated; });
        return generated;
    }

  private:
    Recorder& recorder_;
    StackSource& stacks_;
};

class Recorder::RecordingExchange final : public BirthExchange {
  public:
    RecordingExchange(Recorder& recorder, BirthExchange& notes) : recorder_(recorder), notes_(notes) {}

    bool leaves() const noexcept override { return notes_.leaves(); }
    void leave(BirthNote note, const Birth& birth) noexcept override { notes_.leave(note, birth); }
    bool find(BirthNote& note, StackId stack) const override {
        const bool found = notes_.find(note, stack);
        recorder_.take(
            [&](Segment& segment) { segment.answers.notes.push_back(found ? std::optional(note) : std::nullopt); });
        return found;
    }

    static BirthExchange* over(BirthExchange& notes) { return new RecordingExchange(*the_recorder, notes); }

  private:
    Recorder& recorder_;
    BirthExchange& notes_;
};

const Scanner& Recorder::over(const Scanner& scanner) {
    load_element_by = RecordingScanner::load;
    return *new RecordingScanner(*this, scanner);
}

StackSource& Recorder::over(StackSource& stacks) {
    stacks_ = &stacks;
    return *(shown_ = new RecordingStacks(*this, stacks));
}

void Recorder::over(SessionFacts& facts) {
    facts.generated_kernels = RecordingStacks::generated_kernels;
    facts.over_notes = RecordingExchange::over;
    leave_by_recording(facts);
}

AskRank Recorder::over(AskRank ask) {
    ask_rank_ = ask;
    return RecordingStacks::ask_rank;
}

}  // namespace numsan
