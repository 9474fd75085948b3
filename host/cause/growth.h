// What is said of a loss or a parameter that has grown.
#pragma once

#include <string>

#include "host/log/format.h"
#include "host/track/parameter_history.h"

namespace numsan {

inline std::string said_of_loss_growth(double times) {
    return "the loss had become " + number(times, 3) + " times as large in the steps before";
}

inline std::string said_of(const ParameterGrowth& growth) {
    if (growth.from_near_zero) {
        return "a parameter that began at or near zero has grown to " + number(growth.now, 3) +
               "; none was larger than " + number(growth.largest_start, 3) + " when training began";
    }
    return "a parameter is " + number(growth.times, 3) + " times as large as when training began";
}

}  // namespace numsan
