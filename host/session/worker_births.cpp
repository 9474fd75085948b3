#include "host/session/worker_births.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>

#include "host/cause/birth.h"
#include "host/session/torch_frames.h"

namespace numsan {
namespace {

/// False when the text does not fit: half a path would name another file.
template <size_t N>
bool put(char (&into)[N], const std::string& text) {
    if (text.size() >= N) return false;
    std::memcpy(into, text.c_str(), text.size() + 1);
    return true;
}

}  // namespace

WorkerBirths::WorkerBirths(const StackSource& stacks, PlaceFinder places) noexcept
    : stacks_(stacks), places_(std::move(places)), pid_(getpid()) {
    void* memory = mmap(nullptr, kSlots * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) slots_ = static_cast<Slot*>(memory);
}

WorkerBirths::~WorkerBirths() {
    if (slots_ != nullptr) munmap(slots_, kSlots * sizeof(Slot));
}

void WorkerBirths::begin_child() noexcept {
    leaves_ = slots_ != nullptr;
    pid_ = getpid();
    located_ = 0;
}

WorkerBirths::Slot& WorkerBirths::slot(const BirthNote& note) const {
    uint64_t hash = 14695981039346656037ull;  // FNV-1a, a word at a time
    for (const int64_t word : {static_cast<int64_t>(note.kind), static_cast<int64_t>(note.dtype), note.numel, note.nan,
                               note.pos_inf, note.neg_inf, note.first_bad}) {
        hash = (hash ^ static_cast<uint64_t>(word)) * 1099511628211ull;
    }
    return slots_[(hash ^ (hash >> 32)) % kSlots];
}

/// The line below the worker's loop: what is above it is the parent's stack at the fork.
void WorkerBirths::locate(const Birth& birth) {
    if (located_ == birth.id) return;
    const std::vector<SourceFrame> frames = stacks_.resolve(birth.stack);
    const size_t loop = TorchFrames::worker_loop(frames);
    in_worker_ = loop < frames.size();
    at_.reset();
    const SourceFrame* frame = in_worker_ ? places_.innermost(frames, 0, loop) : nullptr;
    if (frame != nullptr) at_ = Place{frame->file, frame->line, frame->function, std::nullopt};
    located_ = birth.id;
}

void WorkerBirths::leave(BirthNote note, const Birth& birth) noexcept {
    if (!leaves_) return;
    try {
        if (!note.inherited) {
            locate(birth);
            if (!in_worker_) return;
            if (at_.has_value()) {
                if (!put(note.file, at_->file) || !put(note.function, at_->function)) return;
                note.line = at_->line;
            } else if (!birth.intended && !birth.ignored) {
                return;
            }
        }
        if (!put(note.op, birth.op)) return;
        note.mechanism = birth.mechanism;
        note.intended = birth.intended;
        note.ignored = birth.ignored;
        note.birth = birth.id;
        note.seq = birth.seq;
        note.pid = pid_;
        slot(note).store(note);
    } catch (...) {
        located_ = 0;  // the parent reports the batch where it arrives
    }
}

bool WorkerBirths::find(BirthNote& note, StackId stack) const {
    BirthNote found;
    if (slots_ == nullptr || !slot(note).load(found)) return false;
    if (!found.same_tensor(note) || found.pid == 0 || found.pid == pid_) return false;
    if (!TorchFrames::arrives(stacks_.resolve(stack))) return false;
    note = found;
    return true;
}

}  // namespace numsan
