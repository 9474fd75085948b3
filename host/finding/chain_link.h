// An operator on the way of a bad value: before its birth, or between birth and escape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/base/dtype.h"
#include "host/base/ids.h"
#include "host/finding/place.h"
#include "host/finding/tensor_fact.h"
#include "host/stacks/kept_stack.h"

namespace numsan {

struct ChainLink {
    bool before = false;  ///< it computed what the birth's operator read; else it handed the bad value on
    std::string op;
    OpSeq seq{};
    int64_t step = 0;
    DType dtype = DType::Float32;
    bool bad = false;              ///< its result was not finite
    std::optional<double> absmax;  ///< largest and smallest magnitude of a finite result that was read
    std::optional<double> absmin;
    KeptStack stack;                     ///< until the place is known
    std::optional<Place> location = {};  ///< the line that called it
    std::vector<PastMagnitude> history;  ///< of the same operator at the same line, oldest first; before the birth only
};

}  // namespace numsan
