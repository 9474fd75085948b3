#include "interpose/libraries/cufft/cufft_plan.h"

#include "interpose/libraries/cufft/cufft_abi.h"
#include "interpose/libraries/data_type.h"

namespace numsan::cufft {
namespace {

/// Numbers on one side of a transform.
struct Side {
    DType dtype;
    bool is_real, is_half;  ///< real; complex, of a real transform
};

bool is_real(DType dtype) { return info(dtype).lanes == 1; }

/// More than can be counted is no buffer that can be looked at.
int64_t product(int64_t a, int64_t b) {
    int64_t result = 0;
    return __builtin_mul_overflow(a, b, &result) ? -1 : result;
}

/// Sizes and strides of a side. Real numbers that lie where complex ones do have room for as many.
void lay_out(LibraryCall::Buffer& buffer, const Plan& plan, const Layout& layout, const Side& side, bool in_place) {
    const int last = plan.rank - 1;
    const int64_t half = plan.n[last] / 2 + 1;
    const int64_t row = side.is_half ? half : side.is_real && in_place ? 2 * half : plan.n[last];
    int64_t strides[kMostRank] = {};
    int64_t stride = layout.is_given ? layout.stride : 1;
    for (int d = last; d >= 0; --d) {
        strides[d] = stride;
        stride = product(stride, layout.is_given ? layout.embed[d] : d == last ? row : plan.n[d]);
    }
    const auto dim = [&](int64_t size, int64_t step) {
        buffer.sizes[buffer.ndim] = size;
        buffer.strides[buffer.ndim++] = step;
    };
    if (plan.batch != 1) dim(plan.batch, layout.is_given ? layout.distance : stride);
    for (int d = 0; d < plan.rank; ++d) dim(d == last && side.is_half ? half : plan.n[d], strides[d]);
}

}  // namespace

std::optional<PlanTypes> types_of(int type) noexcept {
    switch (type) {
        case kComplexToComplex: return PlanTypes{DType::Complex64, DType::Complex64};
        case kDoubleComplexToDoubleComplex: return PlanTypes{DType::Complex128, DType::Complex128};
        case kRealToComplex: return PlanTypes{DType::Float32, DType::Complex64};
        case kComplexToReal: return PlanTypes{DType::Complex64, DType::Float32};
        case kDoubleToDoubleComplex: return PlanTypes{DType::Float64, DType::Complex128};
        case kDoubleComplexToDouble: return PlanTypes{DType::Complex128, DType::Float64};
        default: return {};
    }
}

std::optional<PlanTypes> types_of(int in, int out) noexcept {
    const std::optional<DType> read = elements_of(in).dtype, written = elements_of(out).dtype;
    return read && written ? std::optional(PlanTypes{*read, *written}) : std::nullopt;
}

void describe(LibraryCall& call, const Plan& plan, const void* in, void* out) noexcept {
    call.queue = DeviceQueue{plan.stream, -1, true};
    call.unseen = plan.unseen;
    if (plan.has_callbacks) call.unseen = "its plan has callbacks";
    if (call.unseen == nullptr && !plan.types) call.unseen = "the type of its plan is not known";
    if (call.unseen != nullptr) return;
    const bool from_real = is_real(plan.types->in), to_real = is_real(plan.types->out);
    const Side reads{plan.types->in, from_real, to_real && !from_real};
    const Side writes{plan.types->out, to_real, from_real && !to_real};
    const bool in_place = in == out;
    const bool is_one_buffer = in_place && reads.dtype == writes.dtype && !plan.in.is_given;
    if (LibraryCall::Buffer* buffer = call.add(in, {reads.dtype}, true, is_one_buffer))
        lay_out(*buffer, plan, plan.in, reads, in_place);
    if (LibraryCall::Buffer* buffer = is_one_buffer ? nullptr : call.add(out, {writes.dtype}, false, true))
        lay_out(*buffer, plan, plan.out, writes, in_place);
    call.add_other(plan.work_area);
    if (writes.is_real && !in_place) call.add_other(in);  // the library may use it for scratch
}

}  // namespace numsan::cufft
