#include "host/perf/backward_passes.h"

#include <algorithm>
#include <utility>

#include "host/ops/op_traits.h"
#include "host/ops/operands.h"
#include "host/perf/value_samples.h"

namespace numsan {

StackId BackwardPasses::reads(const OpEvent& event, bool outside, OpSeq now, OpSeq first,
                              const Lineage& lineage) noexcept {
    now_ = number(now);
    if (event.op->op_class == OpClass::Allocation) {
        allocated_ = event.output_count == 1 ? event.outputs[0].storage : nullptr;
        return 0;
    }
    const void* fresh = std::exchange(allocated_, nullptr);
    StackId taken_back = outside ? StackId(0) : carries_on(event, fresh, first, lineage);
    if (outside) {
        for (int32_t i = 0; i < event.output_count; ++i) {
            if ((event.outputs[i].flags & kWritten) == 0) continue;
            if (Leaf* leaf = find(event.outputs[i].storage, false)) leaf->written = true;
        }
    }
    if ((count_ == 0 && before_count_ == 0) || traits_of(event).has(kConstant)) return taken_back;  // as zero_()
    const bool uses = outside || hands_on(event, fresh, lineage);
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kNumber) != 0) continue;
        const OpSeq written = lineage.written_at(input.storage);
        if (uses && input.storage == nullptr) use_all();  // sparse
        if (uses && written == OpSeq::None) use_unknown(input);
        const int64_t seq = number(written);
        for (size_t k = 0; k < count_; ++k) {
            Pass& pass = passes_[k];
            if (pass.has(seq) && (uses || pass.graph_task != event.graph_task)) pass.use(seq);
        }
        for (size_t k = 0; k < before_count_; ++k) {
            const Pass& pass = before_[k];
            if (pass.has(seq) && seq > pass.used && left_over(input, seq)) taken_back = pass.stack;
        }
    }
    return taken_back;
}

/// An op of a pass whose result lives on where no op outside of the pass is seen to read it: a number that Python has,
/// what another process gets, what a hook of a leaf computes. AccumulateGrad's own ops add, and copy to
/// what they have just allocated: `fresh`.
bool BackwardPasses::hands_on(const OpEvent& event, const void* fresh, const Lineage& lineage) const noexcept {
    const OpClass op_class = event.op->op_class;
    if (op_class == OpClass::HostRead || op_class == OpClass::Collective || !is_of_torch(event.op->name)) return true;
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & kWritten) != 0 && output.storage != fresh &&
            lineage.written_at(output.storage) == OpSeq::None)
            return true;
    }
    const bool fills = event.output_count == 1 && fresh != nullptr && event.outputs[0].storage == fresh;
    return in_leaf_ && !fills && !only_views(event) && !traits_of(event).is({Form::Add, Form::Move});
}

/// An op of a pass adds to what an earlier step left: gradients pile up, or a hook keeps some. They may be read later
/// than anyone looks.
StackId BackwardPasses::carries_on(const OpEvent& event, const void* fresh, OpSeq first,
                                   const Lineage& lineage) noexcept {
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if ((output.flags & kWritten) == 0 || output.storage == fresh) continue;
        const OpSeq written = lineage.written_at(output.storage);
        if (written == OpSeq::None || written >= first) continue;
        use_all();
        if (count_ > 0) return passes_[count_ - 1].stack;
    }
    return 0;
}

void BackwardPasses::use_all() noexcept {
    for (size_t i = 0; i < count_; ++i) passes_[i].use(passes_[i].last);
}

/// The lineage has forgotten, or never knew, who wrote it: it may be a gradient.
void BackwardPasses::use_unknown(const TensorView& input) noexcept {
    for (size_t i = 0; i < handed_count_; ++i) {
        const Handed& one = handed_[i];
        if (one.storage == input.storage || one.numel == input.numel) passes_[one.pass].use(one.seq);
    }
}

bool BackwardPasses::begins(int64_t graph_task, OpSeq last) noexcept {
    if (count_ > 0 && passes_[count_ - 1].graph_task == graph_task) return false;
    const bool again = std::any_of(passes_.begin(), passes_.begin() + static_cast<std::ptrdiff_t>(count_),
                                   [&](const Pass& pass) { return pass.graph_task == graph_task; });
    full_ = full_ || again || count_ == kPasses || number(last) < now_;
    return true;
}

/// Linear probing; nothing is taken out.
BackwardPasses::Leaf* BackwardPasses::find(const void* storage, bool make) noexcept {
    if (storage == nullptr || (leaf_count_ == 0 && !make)) return nullptr;
    const size_t home = mixed(1, reinterpret_cast<uintptr_t>(storage)) % kLeaves;
    for (size_t i = 0; i < kLeaves; ++i) {
        Leaf& leaf = leaves_[(home + i) % kLeaves];
        if (leaf.storage == storage) return &leaf;
        if (leaf.storage != nullptr) continue;
        if (!make || leaf_count_ >= kLeaves / 4 * 3) return nullptr;
        ++leaf_count_;
        leaf.storage = storage;
        return &leaf;
    }
    return nullptr;
}

void BackwardPasses::leaf(const TensorView& variable, const TensorView& gradient, OpSeq first,
                          const Lineage& lineage) noexcept {
    in_leaf_ = true;
    if (count_ == 0 || full_) return;
    Pass& pass = passes_[count_ - 1];
    const int64_t seq = number(lineage.written_at(gradient.storage));
    uint64_t sample = 0;
    Leaf* leaf = sample_values(variable, kSampled, sample) ? find(variable.storage, true) : nullptr;
    if (leaf == nullptr || gradient.storage == nullptr || !pass.has(seq) || handed_count_ == kHanded)
        return pass.use(pass.last);
    const bool now = leaf->step == step_;
    const bool same = leaf->step >= 0 && leaf->numel == variable.numel && leaf->sample == sample;
    const bool made_now = lineage.written_at(variable.storage) >= first && !(now && leaf->written);
    leaf->same = now ? leaf->same && same : same;
    leaf->written = now && leaf->written;
    leaf->numel = variable.numel;
    leaf->sample = sample;
    leaf->step = step_;
    if (made_now) return pass.use(pass.last);
    handed_[handed_count_++] = {gradient.storage, gradient.numel, seq, static_cast<uint32_t>(count_ - 1),
                                static_cast<uint32_t>(leaf - leaves_.data())};
}

/// What changes a parameter unseen reads its gradients unseen, too. An op that writes a parameter says who reads them
/// where they are seen to be read in another pass of the step.
void BackwardPasses::judge() noexcept {
    for (size_t i = 0; i < handed_count_; ++i) {
        if (handed_[i].seq <= passes_[handed_[i].pass].used) leaves_[handed_[i].leaf].read = step_;
    }
    for (size_t i = 0; i < handed_count_; ++i) {
        const Leaf& leaf = leaves_[handed_[i].leaf];
        if (!leaf.same && !(leaf.written && leaf.read == step_)) passes_[handed_[i].pass].use(handed_[i].seq);
    }
    for (size_t i = 0; i < handed_count_; ++i) {
        Pass& pass = passes_[handed_[i].pass];
        if (handed_[i].seq > pass.used) pass.dropped = std::max(pass.dropped, handed_[i].seq);
    }
}

/// An op of the step before wrote it. Arrays of numpy's come without an op, at addresses of which something else may be
/// remembered; their values lie elsewhere.
bool BackwardPasses::left_over(const TensorView& input, int64_t seq) const noexcept {
    const Time* one = times_[(step_ + 1) % 2].of(seq);
    return one == nullptr || one->data == nullptr || one->data == input.storage_data;
}

void BackwardPasses::begin_step(bool follows) noexcept {
    std::copy_n(passes_.begin(), count_, before_.begin());
    before_count_ = follows ? count_ : 0;
    count_ = handed_count_ = 0;
    full_ = false;
    times_[++step_ % 2].count = 0;
}

void BackwardPasses::time(int64_t seq, int64_t ended, const void* data) noexcept {
    Times& times = times_[step_ % 2];
    full_ = full_ || times.count == kTimes;
    if (!full_) times.all[times.count++] = {seq, ended, data};
}

const BackwardPasses::Time* BackwardPasses::Times::of(int64_t seq) const noexcept {
    const Time* const end = all.data() + count;
    const Time* const at = std::lower_bound(all.data(), end, seq, [](const Time& a, int64_t b) { return a.seq < b; });
    return at == end ? nullptr : at;
}

int64_t BackwardPasses::time_of(int64_t seq) const noexcept {
    const Time* one = times_[step_ % 2].of(seq);
    return one == nullptr ? 0 : one->ended;
}

}  // namespace numsan
