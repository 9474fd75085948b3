// N8: finite in float32, not in the type used here.
#include "host/cause/rules/rules.h"

namespace numsan {

namespace {

/// A wider integer would have held it. Numbers that int64 does not hold are too large as numbers.
bool fits_int64(const Features& f) { return f.wrapped_type != IntegerType::Int64; }

}  // namespace

void precision(const Features& f, Score& score) {
    if (f.near_overflow) {
        score.add(Evidence::CloseToLimit, std::string(info(f.dtype).name) +
                                              (f.mechanism == Mechanism::PREC ? " ends below the values it was to hold"
                                                                              : " has little room above these values"));
        return;
    }
    if (f.mechanism == Mechanism::PREC || (f.mechanism == Mechanism::UDF && f.kind == 0)) {
        score.add(Evidence::LostPrecision,
                  f.mechanism == Mechanism::PREC
                      ? std::string(info(f.dtype).name) + " has too few places for the updates of this weight"
                      : std::string(info(f.dtype).name) + " cannot hold values this small");
        return;
    }
    if (!f.cut.empty() && divides_by_zero(f)) score.add(Evidence::CutToZero);
    if (!f.wrapped.empty()) score.add(fits_int64(f) ? Evidence::WrappedInteger : Evidence::WrappedLong);
    constexpr double kLargestFloat32 = 3.4028234663852886e38;
    if (f.narrow && f.mechanism == Mechanism::OVF) {
        score.add(Evidence::NarrowOverflow);
        if (f.result_estimate > 0 && f.result_estimate < kLargestFloat32) {
            score.add(Evidence::FiniteInFloat32, "the result is at most " + number(f.result_estimate, 3) +
                                                     ": finite in float32, beyond " + info(f.dtype).name);
        }
    } else if (f.narrow && f.mechanism != Mechanism::INDET && f.mechanism != Mechanism::DATA &&
               f.mechanism != Mechanism::UNINIT && f.mechanism != Mechanism::STATE) {
        score.add(f.phase == Phase::Backward ? Evidence::NarrowBackward : Evidence::Narrow,
                  std::string("the op ran in ") + info(f.dtype).name);
    } else if (f.narrow_upstream && f.mechanism != Mechanism::INDET && f.mechanism != Mechanism::DATA) {
        score.add(Evidence::NarrowUpstream, "its operand was rounded to a 16- or 8-bit type before");
    }
}

}  // namespace numsan
