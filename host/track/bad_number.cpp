#include "host/track/bad_number.h"

#include <algorithm>
#include <cmath>

#include "host/base/tensor_memory.h"

namespace numsan {

std::optional<double> bad_number(const OpEvent& event, bool infinities) {
    const auto bad = [&](double number) { return std::isnan(number) || (infinities && std::isinf(number)); };
    const double* const end = event.scalars + event.scalar_count;
    if (const double* const found = std::find_if(event.scalars, end, bad); found != end) return *found;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        const uint32_t readable = kNumber | kScannable;
        if ((input.flags & readable) != readable || input.dtype != DType::Float64 || input.numel != 1) continue;
        double number = 0;
        load_element(input.data, &number, sizeof number);
        if (bad(number)) return number;
    }
    return std::nullopt;
}

std::string said_of_number(const std::string& op, double number) {
    const char* const written = std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
    return "a number that `" + op + "` was given is " + written;
}

}  // namespace numsan
