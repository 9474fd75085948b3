// The oracle of the scan kernels: a Thrust transform_reduce over logical elements that decodes every value by the
// definition of its format.
#include "tests/cuda/reference.h"

#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/transform_reduce.h>

#include <cmath>
#include <cstdint>

namespace numsan::gpu {
namespace {

struct PlainTensor {
    static constexpr int kDims = 16;
    const unsigned char* data;
    int64_t sizes[kDims];
    int64_t strides[kDims];  // bytes
    int ndim;
    int64_t numel;
    DTypeInfo type;

    explicit PlainTensor(const TensorView& view)
        : data(static_cast<const unsigned char*>(view.data)), ndim(view.ndim), numel(1), type(info(view.dtype)) {
        for (int d = 0; d < ndim; ++d) {
            sizes[d] = view.sizes[d];
            strides[d] = view.strides[d] * int64_t(type.element_bytes());
            numel *= sizes[d];
        }
    }

    const unsigned char* element(int64_t index) const {
        const unsigned char* p = data;
        for (int d = ndim - 1; d >= 0; --d) {
            p += index % sizes[d] * strides[d];
            index /= sizes[d];
        }
        return p;
    }
};

struct SummaryOf {
    PlainTensor tensor;

    Summary operator()(int64_t index) const {
        const DTypeInfo& t = tensor.type;
        const unsigned char* element = tensor.element(index);
        Summary s = nothing();
        s.health.elements = 1;
        for (int lane = 0; lane < t.lanes; ++lane) {
            uint64_t bits = 0;
            for (int byte = 0; byte < t.lane_bytes; ++byte) {
                bits |= uint64_t(element[lane * t.lane_bytes + byte]) << (8 * byte);
            }
            add_lane(s, bits, index);
        }
        return s;
    }

    static Summary nothing() {
        Summary s{};
        s.health.first_bad = -1;
        s.smallest_nonzero = ~uint64_t(0);
        return s;
    }

    void add_lane(Summary& s, uint64_t bits, int64_t index) const {
        const DTypeInfo& t = tensor.type;
        const int width = 8 * t.lane_bytes, top = (1 << t.exponent_bits) - 1;
        const bool is_signed = t.infinity != InfinityKind::FNU;
        const bool negative = is_signed && ((bits >> (width - 1)) & 1) != 0;
        const uint64_t magnitude = bits - (negative ? uint64_t(1) << (width - 1) : 0);
        const int exponent = int(magnitude >> t.mantissa_bits);
        const uint64_t mantissa = magnitude - (uint64_t(exponent) << t.mantissa_bits);
        s.largest = magnitude > s.largest ? magnitude : s.largest;
        s.smallest_nonzero = magnitude != 0 && magnitude < s.smallest_nonzero ? magnitude : s.smallest_nonzero;
        Health& h = s.health;
        KindSet kind = 0;
        if (t.infinity == InfinityKind::IEEE && exponent == top)
            kind = mantissa != 0 ? kNaN : negative ? kNegInf : kPosInf;
        if (t.infinity == InfinityKind::FN && (bits == 0x7f || bits == 0xff)) kind = kNaN;
        if (!is_signed && bits == 0xff) kind = kNaN;
        if (t.infinity == InfinityKind::FNUZ && bits == 0x80) kind = kNaN;
        h.nan += kind == kNaN;
        h.pos_inf += kind == kPosInf;
        h.neg_inf += kind == kNegInf;
        if (kind != 0) {
            if (h.first_bad < 0) {
                h.first_bad = index;
                h.first_bad_bits = bits;
            }
            h.first_bad_kind = static_cast<KindSet>(h.first_bad_kind | kind);
            return;
        }
        const bool normal = exponent != 0 || !is_signed;
        const double significand = double(mantissa) * ldexp(1.0, -int(t.mantissa_bits)) + (normal ? 1 : 0);
        const double size = ldexp(significand, (normal ? exponent : 1) - int(t.bias));
        const double value = negative ? -size : size;
        const bool first = h.finite == 0;
        ++h.finite;
        h.zero += size == 0;
        h.subnormal += size != 0 && is_signed && size < ldexp(1.0, 1 - int(t.bias));
        h.absmax = size > h.absmax ? size : h.absmax;
        h.absmin = size != 0 && (h.absmin == 0 || size < h.absmin) ? size : h.absmin;
        h.min = first || value < h.min ? value : h.min;
        h.max = first || value > h.max ? value : h.max;
    }
};

struct MergeSummaries {
    Summary operator()(const Summary& x, const Summary& y) const {
        const Health &a = x.health, &b = y.health;
        Summary s = x;
        s.largest = x.largest > y.largest ? x.largest : y.largest;
        s.smallest_nonzero = x.smallest_nonzero < y.smallest_nonzero ? x.smallest_nonzero : y.smallest_nonzero;
        Health& h = s.health;
        h.elements += b.elements;
        h.nan += b.nan;
        h.pos_inf += b.pos_inf;
        h.neg_inf += b.neg_inf;
        h.subnormal += b.subnormal;
        h.zero += b.zero;
        h.finite += b.finite;
        h.absmax = a.absmax > b.absmax ? a.absmax : b.absmax;
        h.absmin = a.absmin == 0 || (b.absmin != 0 && b.absmin < a.absmin) ? b.absmin : a.absmin;
        if (b.finite != 0) {
            h.min = a.finite == 0 || b.min < a.min ? b.min : a.min;
            h.max = a.finite == 0 || b.max > a.max ? b.max : a.max;
        }
        if (b.first_bad >= 0 && (a.first_bad < 0 || b.first_bad < a.first_bad)) {
            h.first_bad = b.first_bad;
            h.first_bad_bits = b.first_bad_bits;
            h.first_bad_kind = b.first_bad_kind;
        }
        return s;
    }
};

}  // namespace

Summary reference_scan(const TensorView& view) {
    const PlainTensor tensor(view);
    const thrust::counting_iterator<int64_t> begin(0);
    return thrust::transform_reduce(thrust::host, begin, begin + tensor.numel, SummaryOf{tensor}, SummaryOf::nothing(),
                                    MergeSummaries{});
}

}  // namespace numsan::gpu
