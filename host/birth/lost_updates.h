// Updates that leave a weight of a 16- or 8-bit type as it was.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/track/lineage.h"

namespace numsan {

struct LostShare {
    std::string evidence;  ///< empty where enough of them arrive
    double largest;        ///< magnitude of the largest update looked at
};

/// A parameter of a 16- or 8-bit type, or an average that follows one, was updated in place: nearly all of the updates
/// were lost because they are below half of its last place, or how large they were. Reads some thousand elements. Pure.
std::optional<LostShare> lost_updates(const OpEvent& event, int32_t index);

/// Not thread-safe: the verdict's lock protects it.
class LostUpdates {
  public:
    /// It outlives this.
    explicit LostUpdates(const Lineage& lineage) : lineage_(lineage) {}

    /// Output `index`, finite and updated by the op with the number `seq`, lost its updates for the second time: says
    /// so once. While a parameter's grow, a rate warms up: the next time counts as the first. Where they faded from
    /// what they were, training has settled: none counts. Looks in steps 2^k, at copies in the step after them, too.
    std::optional<std::string> seen_again(const OpEvent& event, int32_t index, int64_t step, OpSeq seq);

  private:
    struct Sight {
        int times = 0;
        double largest = 0;       ///< when it was last seen
        double earlier = 0;       ///< the largest of all
        OpSeq seq = OpSeq::None;  ///< of the op it was last seen by
    };
    /// What a copy of rounded values left in a weight, some hundred elements of it.
    struct Copy {
        OpSeq seq = OpSeq::None;
        std::vector<float> values;
    };

    /// p.copy_(p.float() - rate * update): the weight is compared with what the copy before left in it.
    std::optional<LostShare> of_copy(const TensorView& weight, const TensorView& source, OpSeq seq);

    const Lineage& lineage_;
    std::map<const void*, Sight> sights_;
    std::map<const void*, Copy> copies_;
};

}  // namespace numsan
