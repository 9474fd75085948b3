// How maps of bounded size give way: what was not used for longest goes first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace numsan {

/// Erases the quarter of `map`, one at least, for which use(value) is smallest, and calls gone(key) for each. How many
/// those are. Throws std::bad_alloc before anything is erased.
template <class Map, class Use, class Gone>
size_t forget_coldest(Map& map, Use use, Gone gone) {
    if (map.empty()) return 0;
    std::vector<decltype(use(map.begin()->second))> uses;
    uses.reserve(map.size());
    for (const auto& [key, value] : map) uses.push_back(use(value));
    const auto last = uses.begin() + static_cast<std::ptrdiff_t>((uses.size() - 1) / 4);
    std::nth_element(uses.begin(), last, uses.end());
    const auto coldest = *last;
    size_t erased = 0;
    for (auto it = map.begin(); it != map.end();) {
        if (use(it->second) > coldest) {
            ++it;
            continue;
        }
        gone(it->first);
        it = map.erase(it);
        ++erased;
    }
    return erased;
}
template <class Map, class Use>
size_t forget_coldest(Map& map, Use use) {
    return forget_coldest(map, use, [](const auto&) {});
}

}  // namespace numsan
