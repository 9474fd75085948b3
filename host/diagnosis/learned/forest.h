// A random forest: trees of questions "is this feature at most that", each with shares of classes at its leaves, of
// which a row of features is given the mean over all trees.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace numsan {

class Forest {
  public:
    /// From its document: a list of trees, each a list of nodes. A node is a leaf, [[class, share], ...] or a question,
    /// [feature, limit, place]: above the limit the walk goes on at that place of the list, else at the next node. None
    /// where that is not what it is, or it names a feature or a class that there is not.
    static std::optional<Forest> read(const nlohmann::ordered_json& document, size_t features, size_t classes);

    /// The share of each class. A feature that is NaN is below every limit. `row` is as long as `features` was. [MT]
    std::vector<double> shares(std::span<const double> row) const;

  private:
    /// A question, or a leaf: `feature` is -1, and its shares are from `next` to `end` of shares_.
    struct Node {
        int32_t feature;
        uint32_t next, end;
        double limit;
    };
    bool add(const nlohmann::ordered_json& tree, size_t features);

    std::vector<Node> nodes_;
    std::vector<uint32_t> roots_;
    std::vector<std::pair<uint32_t, double>> shares_;
    size_t classes_ = 0;
};

}  // namespace numsan
