#include "host/diagnosis/gather/signal_gatherer.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "host/base/thresholds.h"
#include "host/diagnosis/gather/element_sample.h"
#include "host/ops/op_traits.h"

namespace numsan {
namespace {

constexpr int kNearActivation = 3;  ///< ops between an activation and the layer that takes its results: dropout, views

bool is_one_of(const char* name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), std::string_view(name)) != names.end();
}
bool is_rectifier(const char* name) { return is_one_of(name, {"aten::relu", "aten::relu_"}); }
bool is_sigmoid(const char* name) { return is_one_of(name, {"aten::sigmoid", "aten::sigmoid_"}); }
bool is_tanh(const char* name) { return is_one_of(name, {"aten::tanh", "aten::tanh_"}); }
bool is_activation(const char* name) { return is_rectifier(name) || is_sigmoid(name) || is_tanh(name); }
bool is_nll(const char* name) { return is_one_of(name, {"aten::nll_loss_forward", "aten::nll_loss2d_forward"}); }
bool is_measured_loss(const char* name) {
    return is_one_of(name, {"aten::_log_softmax"}) || traits_of(name).has(kLoss);
}
bool is_dropout(const char* name) { return is_one_of(name, {"aten::native_dropout", "aten::_fused_dropout"}); }

/// Share of the results at which the activation is flat.
double share_at_limit(const TensorView& results, bool sigmoid) {
    int64_t flat = 0, count = 0;
    each_sampled(results, SignalGatherer::kElements, [&](double y) {
        const double slope = sigmoid ? 4 * y * (1 - y) : 1 - y * y;  // over the largest
        flat += slope < kSaturatedSlope ? 1 : 0;
        ++count;
    });
    return count > 0 ? static_cast<double>(flat) / static_cast<double>(count) : NAN;
}

double share_of_zeros(const TensorView& results) {
    int64_t zeros = 0, count = 0;
    each_sampled(results, SignalGatherer::kElements, [&](double y) {
        zeros += y == 0 ? 1 : 0;
        ++count;
    });
    return count > 0 ? static_cast<double>(zeros) / static_cast<double>(count) : NAN;
}

/// The sum of the exponentials of a row that is nearest to 1, of the first rows; NaN where none could be read.
double nearest_row_sum(const TensorView& rows) {
    constexpr int64_t kRows = 4, kMostClasses = 256;
    if (!has_elements(rows) || rows.ndim < 1) return NAN;
    const int64_t classes = rows.sizes[rows.ndim == 1 ? 0 : 1];
    const int64_t count = rows.ndim == 1 ? 1 : std::min(rows.sizes[0], kRows);
    if (classes < 1 || classes > kMostClasses) return NAN;
    const int64_t behind = rows.ndim == 1 ? 1 : rows.numel / std::max<int64_t>(rows.sizes[0] * classes, 1);
    double nearest = NAN;
    for (int64_t n = 0; n < count; ++n) {
        double sum = 0;
        for (int64_t c = 0; c < classes; ++c) sum += std::exp(finite_element(rows, (n * classes + c) * behind));
        if (std::isnan(nearest) || std::fabs(sum - 1) < std::fabs(nearest - 1)) nearest = sum;
    }
    return nearest;
}

}  // namespace

SignalGatherer::SignalGatherer(const Lineage& lineage, StackSource& stacks, const StackFacts& facts)
    : lineage_(lineage), stacks_(stacks), facts_(facts), table_(kTable, int16_t(-1)), reads_(kReads) {}

void SignalGatherer::keep_stack(StackId stack) const {
    if (stack != 0) stacks_.keep(stack);
}

int SignalGatherer::find(const TensorView& tensor) const {
    const auto hash = (reinterpret_cast<uintptr_t>(tensor.data) >> 4) * 0x9e3779b97f4a7c15ull >> 32;
    for (size_t i = 0; i < kTable; ++i) {
        const int16_t at = table_[(hash + i) % kTable];
        if (at < 0) return -1;
        if (parameters_[static_cast<size_t>(at)].data == tensor.data) return at;
    }
    return -1;
}

int SignalGatherer::find_or_add(const TensorView& tensor) {
    if (tensor.data == nullptr || tensor.numel == 0 || tensor.device != Device::Cpu) return -1;
    int at = find(tensor);
    if (at < 0) {
        if (parameters_.size() >= kMostParameters) {
            leave_out(reinterpret_cast<uintptr_t>(tensor.data));
            return -1;
        }
        const auto hash = (reinterpret_cast<uintptr_t>(tensor.data) >> 4) * 0x9e3779b97f4a7c15ull >> 32;
        size_t free = hash % kTable;
        while (table_[free] >= 0) free = (free + 1) % kTable;
        at = static_cast<int>(parameters_.size());
        parameters_.emplace_back();
        table_[free] = static_cast<int16_t>(at);
    }
    GatheredParameter& known = parameters_[static_cast<size_t>(at)];
    if (known.impl != tensor.impl || known.numel != tensor.numel) {  // new, or another at the address of one that died
        known = {};
        known.data = tensor.data;
        known.impl = tensor.impl;
        known.numel = tensor.numel;
        known.dtype = tensor.dtype;
        known.ndim = tensor.ndim;
        for (int d = 0; d < tensor.ndim && d < GatheredParameter::kMostDims; ++d) known.sizes[d] = tensor.sizes[d];
        known.needs_gradient = (tensor.flags & kRequiresGrad) != 0;
        find_first_values(tensor, known);
    }
    known.storage = tensor.storage;
    return at;
}

/// Stacks are resolved without the lock, and each of the first ones once.
bool SignalGatherer::knows(StackId stack, const std::vector<Judged>& judged, bool& answer) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known =
        std::find_if(judged.begin(), judged.end(), [&](const Judged& one) { return one.stack == stack; });
    if (known == judged.end()) return false;
    answer = known->is;
    return true;
}

bool SignalGatherer::judge(StackId stack, bool (StackFacts::*ask)(StackId) const, std::vector<Judged>& judged) {
    bool is = false;
    if (knows(stack, judged, is)) return is;
    is = (facts_.*ask)(stack);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (judged.size() < kMostJudged) {
        judged.push_back({stack, is});
        keep_stack(stack);
    }
    return is;
}

void SignalGatherer::loss(const OpEvent& event, const OpContext& context) {
    const TensorView& value = event.inputs[0];
    if (!has_elements(value) || value.numel != 1) return;
    if (!judge(context.stack, &StackFacts::is_loss, roots_)) return;
    Lineage::Record made;
    const bool is_made = lineage_.find(value.storage, made);
    const bool scaled = is_made && made.stack != 0 && judge(made.stack, &StackFacts::is_scaler, scalers_);
    const double loss = finite_element(value, 0);
    const std::lock_guard<std::mutex> lock(mutex_);
    scaled_ = scaled_ || scaled;
    const bool known = std::find(loss_places_.begin(), loss_places_.end(), context.stack) != loss_places_.end();
    if (!known && loss_places_.size() < kMostPlaces) {
        loss_places_.push_back(context.stack);
        keep_stack(context.stack);
    }
    if (const OpInfo* negated = is_made ? negated_loss(made) : nullptr; negated != nullptr) {
        ++negated_;
        negated_op_ = negated;
    }
    backward_ = backward_ != 0 ? backward_ : context.stack;
    if (loss_count_ < 4) first_losses_ += loss / 4;
    last_losses_[loss_count_ % GrowthWatch::kLosses] = loss;
    lowest_loss_ = loss_count_ == 0 ? loss : std::fmin(lowest_loss_, loss);
    ++loss_count_;
    growth_.loss(last_losses_, loss_count_, loss_places_.size() == 1,
                 scaled || (is_made && GrowthWatch::is_product(*made.op)));
    if (is_sampled(context.step)) loss_values_.set(sample_of(context.step), loss);
}

void SignalGatherer::look(const OpEvent& event, const OpContext& context, const Range* ranges, int32_t range_count,
                          bool accumulates) {
    if (event.on_device) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    sampled_ |= uint64_t(1) << sample_of(context.step);
    if (context.node != nullptr) {
        if (accumulates) look_at_accumulation(event);
    } else if (event.grad_enabled) {
        look_at_forward(event, context, ranges, range_count);
    } else {
        look_at_update(event, context);
    }
}

void SignalGatherer::look_at_forward(const OpEvent& event, const OpContext& context, const Range* ranges,
                                     int32_t range_count) {
    add_parameter_read(event, context);
    const char* name = event.op->name;
    if (std::string_view(name) == "aten::div_")
        look_at_dropout(event, context);  // of a mask, which no parameter touches
    if (!context.touched || event.input_count < 1 || event.output_count < 1) return;
    if (std::string_view(name) == "aten::detach") {
        look_at_detach(event, context);
    } else if (is_dropout(name)) {
        look_at_dropout(event, context);
    } else if (is_activation(name)) {
        look_at_activation(event, context, range_count > 0 && was_read(ranges[0]) && ranges[0].max_magnitude == 0);
    } else if (is_measured_loss(name)) {
        look_at_loss(event, context);
    }
}

/// Of the parameters that the op reads the one with the most dimensions stands for it. A transposed one is known once
/// it got a gradient, so that the order is that of step 1.
void SignalGatherer::add_parameter_read(const OpEvent& event, const OpContext& context) {
    int largest = -1;
    for (int32_t i = 0; i < event.input_count; ++i) {
        const TensorView& input = event.inputs[i];
        if (!has_elements(input)) continue;
        const int at = is_parameter(input) ? find_or_add(input) : find_untrained(input);
        if (at < 0) continue;
        GatheredParameter& parameter = parameters_[static_cast<size_t>(at)];
        if (parameter.numel != input.numel) continue;
        if (event.op->op_class == OpClass::View) continue;
        if (parameter.op == nullptr || (context.step == 1 && parameter.order_step != 1)) {
            if (parameter.op == nullptr || parameter.stack != context.stack) keep_stack(context.stack);
            parameter.op = event.op;
            parameter.stack = context.stack;
            parameter.order = next_order_++;
            parameter.order_step = context.step;
        }
        if (parameter.last_read != context.step) ++parameter.reads;
        parameter.last_read = context.step;
        if (largest < 0 || parameter.ndim > parameters_[static_cast<size_t>(largest)].ndim) largest = at;
    }
    if (largest < 0) return;
    reads_[static_cast<size_t>(number(context.seq)) % kReads] = {context.seq, largest};
    look_at_input(event, context, parameters_[static_cast<size_t>(largest)]);
    look_before(event, largest);
    for (int32_t i = 0; i < event.input_count; ++i) {
        if (find(event.inputs[i]) >= 0) continue;
        lineage_.ancestors(event.inputs[i].storage, OpSeq::End, [&](const Lineage::Record& record, int distance) {
            if (distance > kNearActivation) return false;
            if (!is_activation(record.op->name)) return (record.flags & Lineage::kReadsParameter) == 0;
            for (GatheredActivation& one : activations_) {
                if (one.last == record.seq) one.feeds = true;
            }
            return false;
        });
    }
}

int SignalGatherer::parameter_read_by(OpSeq seq) const {
    const Read& read = reads_[static_cast<size_t>(number(seq)) % kReads];
    return read.seq == seq ? read.parameter : -1;
}

GatheredActivation* SignalGatherer::activation_of(const OpEvent& event, const OpContext& context) {
    constexpr size_t kMostCalls = 32;
    const uint64_t key = uint64_t(event.op->id) << 32 | context.stack;
    if (calls_.size() >= kMostActivations && !calls_.contains(key)) {
        leave_out(key);
        return nullptr;
    }
    CallsHere& here = calls_[key];
    if (here.step != context.step) here = {context.step, 0, std::move(here.sites)};
    const auto call = static_cast<size_t>(here.count++);
    if (call < here.sites.size()) return &activations_[static_cast<size_t>(here.sites[call])];
    if (call >= kMostCalls || activations_.size() >= kMostActivations) {
        leave_out(key + (uint64_t(call) << 48));
        return nullptr;
    }
    here.sites.push_back(static_cast<int>(activations_.size()));
    GatheredActivation& made = activations_.emplace_back();
    made.op = event.op;
    made.stack = context.stack;
    made.call = static_cast<int>(call);
    keep_stack(context.stack);
    return &made;
}

void SignalGatherer::look_at_activation(const OpEvent& event, const OpContext& context, bool zero) {
    const TensorView& results = event.outputs[0];
    if (!has_elements(results)) return;
    GatheredActivation* here = activation_of(event, context);
    if (here == nullptr) return;
    here->last = context.seq;
    Lineage::Record made;
    if (lineage_.find(event.inputs[0].storage, made) && parameter_read_by(made.seq) >= 0)
        here->parameter = parameter_read_by(made.seq);
    const int sample = sample_of(context.step);
    if (is_rectifier(event.op->name)) {
        // A sample of zeros is no proof: not all of them are.
        const double share = share_of_zeros(results);
        here->zeros.set(sample, zero ? 1 : std::min<double>(share, std::nextafter(1.0f, 0.0f)));
    } else {
        here->at_limit.set(sample, share_at_limit(results, is_sigmoid(event.op->name)));
    }
}

/// The op that made all of the tensor. Of a part of a storage it is not known whether the last op wrote that part.
bool SignalGatherer::has_made(const TensorView& tensor, Lineage::Record& made) const {
    const bool whole = tensor.numel * int64_t(info(tensor.dtype).element_bytes()) == tensor.storage_bytes;
    return whole && lineage_.find(tensor.storage, made) && made.numel == tensor.numel;
}

void SignalGatherer::look_at_loss(const OpEvent& event, const OpContext& context) {
    Lineage::Record made;
    const bool known = has_made(event.inputs[0], made);
    const OpInfo* maker = known ? made.op : nullptr;
    auto found = std::find_if(losses_.begin(), losses_.end(), [&](const GatheredLoss& one) {
        return one.op == event.op && one.made_by == maker && one.stack == context.stack;
    });
    if (found == losses_.end()) {
        if (losses_.size() >= kMostLosses) return;
        found = losses_.insert(found, GatheredLoss{event.op, maker, context.stack, known ? made.stack : 0});
        keep_stack(context.stack);
        keep_stack(found->made_at);
    }
    look_at_labels(event, *found);
    const double sum = is_nll(event.op->name) ? nearest_row_sum(event.inputs[0]) : 1;
    if (std::isnan(sum)) return;  // nothing can be said of such rows
    if (found->last_step != context.step) ++found->steps;
    found->last_step = context.step;
    if (std::fabs(sum - 1) <= kRawRow || found->last_raw == context.step) return;
    found->last_raw = context.step;
    if (std::isfinite(sum)) found->row_sum = sum;
    ++found->raw_steps;
}

}  // namespace numsan
