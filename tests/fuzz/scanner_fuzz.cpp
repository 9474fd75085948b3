// CpuScanner over any element type, sizes, strides, offset and bytes, against a loop over the logical elements. The
// buffer has exactly the tensor's bytes, so the address sanitizer sees every read outside it.
#include "host/scan/cpu_scanner.h"
#include "tests/fuzz/any_tensor.h"
#include "tests/fuzz/targets.h"

namespace numsan::fuzz {
namespace {

void compare(const TensorView& view, const Expected& expected) {
    const CpuScanner scanner;
    const Range range = scanner.range(view);
    const char* name = info(view.dtype).name;
    require(range.max_magnitude == expected.range.max_magnitude, "the largest magnitude", name);
    require(range.min_nonzero_magnitude == expected.range.min_nonzero_magnitude, "the smallest magnitude", name);
    require(range.suspicious == expected.range.suspicious, "suspicion is exact", name);
    const Health got = scanner.health(view), &want = expected.health;
    require(got.elements == want.elements && got.finite == want.finite, "elements and finite lanes", name);
    require(got.nan == want.nan && got.pos_inf == want.pos_inf && got.neg_inf == want.neg_inf, "bad lanes", name);
    require(got.zero == want.zero && got.subnormal == want.subnormal, "zeros and subnormals", name);
    require(got.min == want.min && got.max == want.max, "the range", name);
    require(got.absmin == want.absmin && got.absmax == want.absmax, "the range of magnitudes", name);
    require(got.first_bad == want.first_bad && got.first_bad_bits == want.first_bad_bits, "the first bad one", name);
    require(got.first_bad_kind == want.first_bad_kind, "the kinds of the first bad element", name);
    require(scanner.kinds(view) == want.kinds(), "the kinds", name);
}

}  // namespace

void fuzz_scanner(std::string_view input) {
    Bytes bytes(input);
    Tensor tensor;
    if (!build(bytes, tensor)) return;
    TensorView view = tensor.view();
    compare(view, expected_of(tensor));
    Expected nothing;
    nothing.health.first_bad = -1;
    view.data = nullptr;
    compare(view, nothing);
}

}  // namespace numsan::fuzz
