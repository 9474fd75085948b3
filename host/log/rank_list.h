// Ranks of a job as a list that stays short: "0-3, 7, 8-56:8".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numsan {

/// In the order of the ranks: rising runs as "0-3", four or more at one distance as "8-56:8" (8, 16, ... 56). Empty for
/// none. Nothing is left out. [MT]
std::string rank_list(const std::vector<int64_t>& ranks);

/// The ranks of such a text, up to `most` of them; empty where it is none, or there would be more. [MT]
std::vector<int64_t> ranks_of_list(std::string_view text, size_t most = 1 << 20);

}  // namespace numsan
