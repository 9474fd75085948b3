#include "host/diagnosis/learned/forest.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace numsan {
namespace {

using Json = nlohmann::ordered_json;

/// A whole number below `end`.
std::optional<uint32_t> place_in(const Json& value, size_t end) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= end) return {};
    return value.get<uint32_t>();
}

}  // namespace

std::optional<Forest> Forest::read(const Json& document, size_t features, size_t classes) {
    if (!document.is_array() || document.empty()) return {};
    Forest forest;
    forest.classes_ = classes;
    for (const Json& tree : document) {
        if (!tree.is_array() || tree.empty() || !forest.add(tree, features)) return {};
    }
    return forest;
}

bool Forest::add(const Json& tree, size_t features) {
    const auto root = static_cast<uint32_t>(nodes_.size());
    roots_.push_back(root);
    for (size_t at = 0; at < tree.size(); ++at) {
        const Json& node = tree[at];
        if (!node.is_array() || node.empty()) return false;
        if (node[0].is_array()) {
            const auto first = static_cast<uint32_t>(shares_.size());
            for (const Json& one : node) {
                if (!one.is_array() || one.size() != 2 || !one[1].is_number()) return false;
                const auto of = place_in(one[0], classes_);
                if (!of) return false;
                shares_.emplace_back(*of, one[1].get<double>());
            }
            nodes_.push_back({-1, first, static_cast<uint32_t>(shares_.size()), 0});
            continue;
        }
        if (node.size() != 3 || !node[1].is_number()) return false;
        const auto feature = place_in(node[0], features);
        const auto above = place_in(node[2], tree.size());
        if (!feature || !above || *above <= at + 1) return false;  // so that a walk ends
        nodes_.push_back({static_cast<int32_t>(*feature), root + *above, 0, node[1].get<double>()});
    }
    return nodes_.back().feature < 0;
}

std::vector<double> Forest::shares(std::span<const double> row) const {
    std::vector<double> sums(classes_);
    for (const uint32_t root : roots_) {
        uint32_t at = root;
        while (nodes_[at].feature >= 0) {
            const double value = row[static_cast<size_t>(nodes_[at].feature)];
            at = static_cast<float>(value) > nodes_[at].limit ? nodes_[at].next : at + 1;
        }
        for (uint32_t i = nodes_[at].next; i < nodes_[at].end; ++i) sums[shares_[i].first] += shares_[i].second;
    }
    for (double& sum : sums) sum /= static_cast<double>(roots_.size());
    return sums;
}

}  // namespace numsan
