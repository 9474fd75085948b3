#include "host/birth/reported_births.h"

#include <algorithm>

#include "host/ops/operands.h"

namespace numsan {

/// Nothing that reads them changes what is said of them, or whether anything is.
bool ReportedBirths::are_reported(const BirthKinds& births, const OpContext& context) {
    if (births.muted != 0 || births.flushed != 0 || births.unsure != 0) return false;
    for (const Kind kind : kNonFiniteKinds) {
        const BirthId id = births.of(kind);
        if (id == 0 || id == reported_) continue;
        const Birth* birth = births_.find(id);
        if (birth == nullptr || !birth->escaped || birth->intended || birth->waits || birth->unread) return false;
        // What has arrived in this step may be loaded into state, which is a birth of its own.
        if (birth->mechanism == Mechanism::DATA && birth->step == context.step) return false;
        reported_ = id;
    }
    return true;
}

/// Of a tensor that has a value that is not finite. What is NaN all over shows in its range.
KindSet ReportedBirths::kinds_in(const TensorView& tensor, const Range& range) const {
    const DTypeInfo& type = info(tensor.dtype);
    if (type.infinity == InfinityKind::IEEE && range.min_nonzero_magnitude > type.exponent_mask()) return kNaN;
    return scanner_.kinds(tensor);
}

/// False: it may hold something new.
bool ReportedBirths::read(const TensorView& input, const OpContext& context, bool gone, BirthKinds& births) {
    const BirthKinds* known = ledger_.may_hold(input.storage) ? ledger_.find(input) : nullptr;
    if (known == nullptr) return gone || !scanner_.range(input).suspicious;
    if (!are_reported(*known, context)) return false;
    KindSet kinds = kNaN | kAnyInf;
    if (!gone) {
        const Range range = scanner_.range(input);
        if (!range.suspicious) return true;  // a clean slice of a bad storage
        kinds = kinds_in(input, range);
    }
    for (const Kind kind : kNonFiniteKinds) {
        const BirthId id = known->of(kind);
        if ((kinds & kind) != 0 && id != 0 && (births.of(kind) == 0 || id < births.of(kind))) births.of(kind) = id;
    }
    return true;
}

BirthKinds ReportedBirths::handed_on(const OpEvent& event, const OpContext& context, OutputSet bad, const Range* ranges,
                                     int32_t count) {
    BirthKinds births;
    reported_ = 0;
    const WrittenOperands written(event);
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if ((input.flags & kUnavailable) != 0) return {};
        if (scannable(input) && !read(input, context, written.contain(input), births)) return {};
    }
    if (births.finite()) return {};
    kinds_.assign(static_cast<size_t>(event.output_count), 0);
    for (int32_t i = 0; i < event.output_count; ++i) {
        const TensorView& output = event.outputs[i];
        if (!scannable(output) || !bad.contains(i)) return {};
        if (is_view(event, output)) continue;
        const Range range = i < count ? ranges[i] : scanner_.range(output);
        if (!range.suspicious) return {};
        const KindSet kinds = kinds_in(output, range);
        const auto is_new = [&](Kind kind) { return (kinds & kind) != 0 && births.of(kind) == 0; };
        if (std::any_of(std::begin(kNonFiniteKinds), std::end(kNonFiniteKinds), is_new)) return {};
        kinds_[static_cast<size_t>(i)] = kinds;
    }
    return births;
}

BirthKinds ReportedBirths::write(const OpEvent& event, int32_t index, const BirthKinds& births, int64_t step) {
    const TensorView& output = event.outputs[index];
    const KindSet kinds = kinds_[static_cast<size_t>(index)];
    if (kinds == 0) return {};
    ledger_.mark_written(output);
    const BirthKinds* old = ledger_.may_hold(output.storage) ? ledger_.find(output) : nullptr;
    const bool whole = (output.flags & kWritten) == 0 || covers_storage(output);
    BirthKinds now = old != nullptr && !whole ? *old : BirthKinds{};
    now.since = step;
    for (const Kind kind : kNonFiniteKinds) {
        if ((kinds & kind) == 0) continue;
        now.of(kind) = births.of(kind);
        now.unsure = static_cast<KindSet>(now.unsure & ~kind);
    }
    const bool same = old != nullptr && std::equal(old->birth, std::end(old->birth), now.birth) &&
                      old->muted == now.muted && old->flushed == now.flushed && old->unsure == now.unsure &&
                      old->bytes == output.storage_bytes;
    if (!same) ledger_.set(output, now);
    return now;
}

}  // namespace numsan
