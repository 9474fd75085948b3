// Measures a training while it runs, for the option `diagnose`: the signals of signals.def, of tensors in the host's
// memory, in the steps of sampled_steps.h. Of a tensor it reads 256 elements at most, of what a
// loss takes 4 rows of as many.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/base/health.h"
#include "host/diagnosis/gather/gathered.h"
#include "host/diagnosis/growth_watch.h"
#include "host/diagnosis/signals.h"
#include "host/finding/place_of.h"
#include "host/ops/operands.h"
#include "host/stacks/stack_source.h"
#include "host/track/lineage.h"
#include "host/track/op_context.h"
#include "host/track/stack_facts.h"

namespace numsan {

/// [MT] One lock, taken in sampled steps and at each backward(); no stack is resolved under it. Memory grows with the
/// number of places in the program that are measured, up to fixed limits, and not with time. May throw std::bad_alloc.
class SignalGatherer {
  public:
    static constexpr int64_t kElements = 256;  ///< of an activation or a gradient
    static constexpr size_t kMostParameters = 2048;
    static constexpr size_t kMostActivations = 512;

    /// All outlive this. `lineage` must not know of an op yet when op() is called for it.
    SignalGatherer(const Lineage& lineage, StackSource& stacks, const StackFacts& facts);
    SignalGatherer(const SignalGatherer&) = delete;
    SignalGatherer& operator=(const SignalGatherer&) = delete;

    /// A finished op on the host, not yet remembered. `ranges`: of its first `range_count` outputs, as they were read.
    void op(const OpEvent& event, const OpContext& context, const Range* ranges, int32_t range_count,
            bool accumulates) {
        if (context.ignored || context.in_data_loader) return;
        if (context.in_optimizer) last_in_optimizer_.store(context.seq, std::memory_order_relaxed);
        if (event.input_count == 1 && event.inputs[0].numel == 1 && is_root(event)) loss(event, context);
        if (is_sampled(context.step)) look(event, context, ranges, range_count, accumulates);
        growth_.op(event, context, ranges, range_count);
    }
    /// An AccumulateGrad node begins.
    void gradient(const NodeEvent& event, const OpContext& context);
    void optimizer_step(int64_t step, StackId stack);

    /// Whether what is alive should be named now: once, in the second step.
    bool wants_names(int64_t step) { return step >= 2 && !asked_.exchange(true, std::memory_order_relaxed); }
    void name(const LiveNames& names);

    /// Whether growth was found that take_warnings() has not told yet.
    bool has_warnings() const noexcept { return growth_.count() > taken_.load(std::memory_order_relaxed); }
    /// Keeps what is new for the report, with the names that are known by now. The first one of the run, once.
    std::optional<EarlyWarning> take_warnings(const PlaceFinder& places);

    /// What was measured so far. `places` finds its lines.
    Signals signals(const PlaceFinder& places) const;

    // Around a fork: a child begins anew.
    void lock() {
        mutex_.lock();
        growth_.lock();
    }
    void unlock() {
        growth_.unlock();
        mutex_.unlock();
    }
    void forget();

  private:
    /// All but places; place(where, stack) is called for each of these.
    void copy_to(Signals& out, const std::function<void(std::optional<Place>&, StackId)>& place) const;

    static constexpr size_t kTable = 2 * kMostParameters;
    static constexpr size_t kReads = 4096;
    static constexpr size_t kMostLosses = 16;
    static constexpr size_t kMostPlaces = 8;
    static constexpr size_t kMostJudged = 64;
    static constexpr size_t kMostLeftOut = 4096;

    /// What was asked of a stack, and the answer.
    struct Judged {
        StackId stack;
        bool is;
    };
    bool knows(StackId stack, const std::vector<Judged>& judged, bool& answer) const;
    bool judge(StackId stack, bool (StackFacts::*ask)(StackId) const, std::vector<Judged>& judged);
    void leave_out(uint64_t key) {
        if (left_out_.size() < kMostLeftOut) left_out_.insert(key);
    }

    void loss(const OpEvent& event, const OpContext& context);
    void look(const OpEvent& event, const OpContext& context, const Range* ranges, int32_t range_count,
              bool accumulates);
    void look_at_forward(const OpEvent& event, const OpContext& context, const Range* ranges, int32_t range_count);
    void look_at_update(const OpEvent& event, const OpContext& context);
    void look_at_accumulation(const OpEvent& event);
    void look_at_activation(const OpEvent& event, const OpContext& context, bool zero);
    void look_at_dropout(const OpEvent& event, const OpContext& context);
    void look_at_labels(const OpEvent& event, GatheredLoss& loss) const;
    void look_at_input(const OpEvent& event, const OpContext& context, GatheredParameter& parameter);
    bool comes_to_trained(const GatheredParameter& parameter) const;
    int find_untrained(const TensorView& tensor);
    void look_before(const OpEvent& event, int parameter);
    void look_at_detach(const OpEvent& event, const OpContext& context);
    void find_first_values(const TensorView& tensor, GatheredParameter& parameter) const;
    const OpInfo* negated_loss(const Lineage::Record& root) const;
    bool was_stepped(const GatheredParameter& parameter, const void* gradient, OpSeq since) const;
    bool has_made(const TensorView& tensor, Lineage::Record& made) const;
    void look_at_loss(const OpEvent& event, const OpContext& context);
    void add_parameter_read(const OpEvent& event, const OpContext& context);
    int find(const TensorView& tensor) const;
    int find_or_add(const TensorView& tensor);
    GatheredActivation* activation_of(const OpEvent& event, const OpContext& context);
    int parameter_read_by(OpSeq seq) const;
    void keep_stack(StackId stack) const;

    const Lineage& lineage_;
    StackSource& stacks_;
    const StackFacts& facts_;
    mutable std::mutex mutex_;
    GrowthWatch growth_;
    std::atomic<size_t> taken_{0};
    std::vector<EarlyWarning> warnings_;
    std::atomic<bool> asked_{false};
    std::vector<GatheredParameter> parameters_;
    std::vector<int16_t> table_;  ///< by address, open addressing: position in parameters_, -1: free
    struct Read {
        OpSeq seq = OpSeq::None;
        int parameter = -1;
    };
    std::vector<Read> reads_;  ///< by the op's number: the parameter that it read
    std::vector<GatheredActivation> activations_;
    struct CallsHere {
        int64_t step = -1;
        int count = 0;
        std::vector<int> sites;  ///< positions in activations_, by the call's number in a step
    };
    std::unordered_map<uint64_t, CallsHere> calls_;  ///< by op and stack
    std::vector<GatheredLoss> losses_;
    /// A parameter that no gradient has come to, by its storage: ops read a transposed view of it.
    struct Untrained {
        const void* impl;
        std::string name;
        bool optimized, of_module;
    };
    std::unordered_map<const void*, Untrained> untrained_;
    bool optimizers_found_ = false;
    int64_t negated_ = 0;
    const OpInfo* negated_op_ = nullptr;
    FixedSeries loss_values_, step_sizes_;
    uint64_t sampled_ = 0;  ///< bit i: sample i was seen
    int64_t loss_count_ = 0;
    double first_losses_ = 0;
    double last_losses_[GrowthWatch::kLosses] = {};
    double lowest_loss_ = 0;
    bool scaled_ = false;  ///< a loss scaler made a loss
    std::vector<StackId> loss_places_;
    std::vector<Judged> roots_, scalers_;
    std::atomic<OpSeq> last_in_optimizer_{OpSeq::None};
    StackId backward_ = 0, optimizer_ = 0;
    int64_t optimizer_steps_ = 0;
    int64_t next_order_ = 0;
    std::unordered_set<uint64_t> left_out_;
};

}  // namespace numsan
