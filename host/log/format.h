// Numbers as text, whatever the host program's locale, and never cut short.
#pragma once

#include <cstdint>
#include <string>

namespace numsan {

/// With so many significant digits, as C's %.3g has them: "0.25", "1e-05", "3.4e+38", "inf", "nan". [MT]
std::string number(double value, int digits);

/// With so many digits after the point: "0.92", "65504". [MT]
std::string fixed(double value, int decimals);

/// With so many digits after the first one: "1.50000e-07". [MT]
std::string scientific(double value, int decimals);

/// Hexadecimal, with zeros in front up to `width`: "00ff". [MT]
std::string hex(uint64_t value, int width);

}  // namespace numsan
