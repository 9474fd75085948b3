// What is kept of each parameter, activation and loss while a training is measured. Within host/diagnosis only.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/diagnosis/gather/sampled_steps.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// A value for each sampled step, in memory that does not grow.
class FixedSeries {
  public:
    FixedSeries() { values_.fill(NAN); }
    void set(int sample, double value) { values_[static_cast<size_t>(sample)] = static_cast<float>(value); }
    double at(int sample) const { return values_[static_cast<size_t>(sample)]; }
    bool has(int sample) const { return !std::isnan(at(sample)); }

  private:
    std::array<float, kMostSampled> values_;
};

/// What a parameter's first values were.
enum class Initial : uint8_t {
    Unknown,  ///< loaded, copied, or computed of other values
    Random,   ///< an initialiser's random numbers, scaled and moved at most
    Zeros,    ///< nothing but zeros
};

struct GatheredParameter {
    static constexpr int64_t kElements = 64;  ///< that a step's change is measured at
    static constexpr int kMostDims = 4;

    const void* data = nullptr;  ///< of its first element: its identity
    const void* storage = nullptr;
    const void* impl = nullptr;
    int64_t numel = 0;
    int64_t sizes[kMostDims] = {};
    int ndim = 0;
    DType dtype = DType::Float32;
    const OpInfo* op = nullptr;  ///< that read it first
    StackId stack = 0;
    int64_t order = -1;  ///< among the parameters as the forward pass of `order_step` read them
    int64_t order_step = -1;
    std::string name;
    double before[kElements] = {};  ///< as the gradient of step `before_step` arrived
    int64_t before_step = -1;
    bool changed = false;
    bool needs_gradient = true;
    /// Index of the parameter whose op takes what is computed of this one, rather one that changes; -1: none does.
    int next = -1;
    Initial initial = Initial::Unknown;
    StackId made_at = 0;          ///< where it got its first values
    StackId detached_at = 0;      ///< where what is computed of it leaves the graph
    OpSeq written = OpSeq::None;  ///< of one without gradients: the op that wrote it before it was read first
    int64_t passes = 0;           ///< gradients that came to it in sampled steps
    int64_t reads = 0;            ///< sampled steps in which an op with gradients on read it
    int64_t last_read = -1;       ///< the last one of these
    bool optimized = false;       ///< an optimizer held it in the second step
    bool of_module = true;        ///< a module has it; taken to be so where it has no name
    bool moves = false;           ///< in step `before_step` a gradient was not zero at one of these elements
    bool used = false;            ///< its gradient has a part that the optimizer has used
    bool was_used = false;        ///< the same before what is being added now
    FixedSeries gradient, weight, update, carried, input;
};

struct GatheredActivation {
    const OpInfo* op = nullptr;
    StackId stack = 0;
    int call = 0;
    int parameter = -1;  ///< index of a GatheredParameter
    bool feeds = false;
    OpSeq last = OpSeq::None;
    FixedSeries zeros, at_limit, dropped;
};

struct GatheredLoss {
    const OpInfo* op = nullptr;
    const OpInfo* made_by = nullptr;
    StackId stack = 0;
    StackId made_at = 0;
    int64_t last_step = -1;
    int64_t last_raw = -1;
    int64_t steps = 0;
    int64_t raw_steps = 0;
    double row_sum = 0;
    int64_t classes = 0;  ///< of a row; 0: unknown
    int64_t labels = 0;   ///< that were looked at
    bool same_labels = true;
    double label = 0;    ///< the first one
    double scale = NAN;  ///< size of predictions over that of their labels, as the loss was first computed
};

}  // namespace numsan
