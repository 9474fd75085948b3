#include "interpose/libraries/cufft/cufft_plan.h"

#include "interpose/libraries/cufft/cufft_abi.h"

namespace numsan::cufft {
namespace {

/// Numbers on one side of a transform.
struct Side {
    DType dtype;
    bool is_real, is_half;  ///< real; complex, of a real transform: the other half is its mirror image
};

bool sides_of(int type, Side& in, Side& out) {
    constexpr Side kReal{DType::Float32, true, false}, kDouble{DType::Float64, true, false};
    constexpr Side kHalf{DType::Complex64, false, true}, kDoubleHalf{DType::Complex128, false, true};
    switch (type) {
        case kComplexToComplex: in = out = {DType::Complex64, false, false}; return true;
        case kDoubleComplexToDoubleComplex: in = out = {DType::Complex128, false, false}; return true;
        case kRealToComplex: in = kReal, out = kHalf; return true;
        case kComplexToReal: in = kHalf, out = kReal; return true;
        case kDoubleToDoubleComplex: in = kDouble, out = kDoubleHalf; return true;
        case kDoubleComplexToDouble: in = kDoubleHalf, out = kDouble; return true;
        default: return false;
    }
}

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

void describe(LibraryCall& call, const Plan& plan, const void* in, void* out) noexcept {
    call.queue = DeviceQueue{plan.stream, -1, true};
    call.unseen = plan.unseen;
    if (plan.has_callbacks) call.unseen = "its plan has callbacks";
    Side reads{}, writes{};
    if (call.unseen == nullptr && !sides_of(plan.type, reads, writes))
        call.unseen = "the type of its plan is not known";
    if (call.unseen != nullptr) return;
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
