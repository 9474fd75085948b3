#include "host/log/format.h"

#include <fmt/format.h>

namespace numsan {

std::string number(double value, int digits) { return fmt::format("{:.{}g}", value, digits); }

std::string fixed(double value, int decimals) { return fmt::format("{:.{}f}", value, decimals); }

std::string scientific(double value, int decimals) { return fmt::format("{:.{}e}", value, decimals); }

std::string hex(uint64_t value, int width) { return fmt::format("{:0{}x}", value, width); }

}  // namespace numsan
