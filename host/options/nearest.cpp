// Edit distance with swaps of neighbours (optimal string alignment).
#include "host/options/nearest.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace numsan {
namespace {

constexpr size_t kLongestWord = 64;  // what is longer is compared by its beginning

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
    a = a.substr(0, kLongestWord);
    b = b.substr(0, kLongestWord);
    std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
    for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t replace = cost[i - 1][j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));
            cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
            const bool swapped =
                i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
            if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    }
    return cost[a.size()][b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
    std::string best;
    size_t best_distance = std::numeric_limits<size_t>::max();
    for (const std::string& candidate : known) {
        const size_t distance = edit_distance(word, candidate);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

}  // namespace numsan
