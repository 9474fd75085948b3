// What SignalGatherer keeps: named, forgotten, and as the plain data of signals.h.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "host/diagnosis/gather/signal_gatherer.h"

namespace numsan {
namespace {

std::optional<Place> place_of(StackId stack, const StackSource& stacks, const PlaceFinder& places) {
    if (stack == 0) return {};
    const std::vector<SourceFrame> frames = stacks.resolve(stack);
    const SourceFrame* frame = places.innermost_user(frames);
    if (frame == nullptr) frame = places.innermost(frames);
    return frame != nullptr ? std::optional(places.place(*frame)) : std::nullopt;
}

}  // namespace

Signals SignalGatherer::signals(const PlaceFinder& places) const {
    Signals out;
    struct Wanted {
        std::optional<Place>* place;
        StackId stack;
    };
    std::vector<Wanted> wanted;
    copy_to(out, [&](std::optional<Place>& place, StackId stack) { wanted.push_back({&place, stack}); });
    // Files are read and stacks resolved without the lock.
    std::map<StackId, std::optional<Place>> found;
    for (const Wanted& one : wanted) {
        const auto [at, is_new] = found.try_emplace(one.stack);
        if (is_new) at->second = place_of(one.stack, stacks_, places);
        *one.place = at->second;
    }
    return out;
}

std::optional<EarlyWarning> SignalGatherer::take_warnings(const PlaceFinder& places) {
    std::vector<FoundGrowth> all;
    size_t first = 0;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        all = growth_.found();
        first = taken_.exchange(all.size());
    }
    std::vector<EarlyWarning> made;
    for (size_t i = first; i < all.size(); ++i) {
        const FoundGrowth& found = all[i];
        EarlyWarning& one = made.emplace_back();
        const OpInfo* op = found.op;
        StackId stack = found.stack;
        if (found.of != FoundGrowth::Of::Output) {
            const std::lock_guard<std::mutex> lock(mutex_);
            for (const GatheredParameter& known : parameters_) {
                if (known.impl != found.impl) continue;
                op = known.op;
                stack = known.stack;
                one.name = known.name;
                one.shape.assign(known.sizes, known.sizes + std::min(known.ndim, GatheredParameter::kMostDims));
            }
        }
        one.of = found.of == FoundGrowth::Of::Output      ? "output"
                 : found.of == FoundGrowth::Of::Parameter ? "parameter"
                                                          : "gradient";
        one.op = op != nullptr ? op->name : "";
        one.location = place_of(stack, stacks_, places);
        one.dtype = info(found.dtype).name;
        one.step = found.step;
        one.size = magnitude_value(found.largest, found.dtype);
        one.limit = largest_value(found.dtype);
        one.factor = std::exp2(found.forecast.rate);
        one.grown = found.forecast.seen;
        one.steps = std::max<int64_t>(std::llround(found.forecast.steps), 1);
        one.least = std::clamp<int64_t>(static_cast<int64_t>(std::floor(found.forecast.least)), 1, one.steps);
        one.most = std::max(static_cast<int64_t>(std::ceil(found.forecast.most)), one.steps);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    warnings_.insert(warnings_.end(), made.begin(), made.end());
    return first == 0 && !made.empty() ? std::optional(made.front()) : std::nullopt;
}

void SignalGatherer::copy_to(Signals& out, const std::function<void(std::optional<Place>&, StackId)>& place) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<int> samples;
    for (int i = 0; i < kMostSampled; ++i) {
        if ((sampled_ >> i & 1) != 0) samples.push_back(i);
    }
    const auto series = [&](const FixedSeries& kept) {
        Series values;
        for (const int sample : samples) values.push_back(kept.at(sample));
        return values;
    };
    for (const int sample : samples) out.steps.push_back(step_of_sample(sample));
    out.loss = series(loss_values_);
    out.step_size = series(step_sizes_);
    out.trend.count = loss_count_;
    out.trend.places = static_cast<int64_t>(loss_places_.size());
    // Of losses at different scales no mean is known.
    out.trend.first = loss_count_ >= 4 && !scaled_ ? first_losses_ : NAN;
    out.trend.lowest = loss_count_ > 0 && !scaled_ ? lowest_loss_ : NAN;
    double sum = 0;
    const int64_t last = std::min<int64_t>(loss_count_, GrowthWatch::kLosses);
    for (int64_t i = 0; i < last; ++i) sum += last_losses_[i];
    out.trend.last = last > 0 && !scaled_ ? sum / static_cast<double>(last) : NAN;
    out.trend.negated = negated_;
    out.trend.negated_op = negated_op_ != nullptr ? negated_op_->name : "";
    out.optimizer_steps = optimizer_steps_;
    out.warnings = warnings_;
    place(out.optimizer, optimizer_);
    place(out.backward, backward_);
    out.left_out = static_cast<int64_t>(left_out_.size());
    out.parameters.reserve(parameters_.size());  // they stay where they are until their places are known
    out.activations.reserve(activations_.size());
    out.losses.reserve(losses_.size());

    std::vector<const GatheredParameter*> ordered;
    for (const GatheredParameter& one : parameters_) ordered.push_back(&one);
    std::stable_sort(ordered.begin(), ordered.end(), [](const GatheredParameter* a, const GatheredParameter* b) {
        return static_cast<uint64_t>(a->order) < static_cast<uint64_t>(b->order);  // -1, never read, comes last
    });
    std::map<const GatheredParameter*, int> position;
    for (const GatheredParameter* one : ordered) {
        position[one] = static_cast<int>(out.parameters.size());
        ParameterSignals& made = out.parameters.emplace_back();
        made.name = one->name;
        made.shape.assign(one->sizes, one->sizes + std::min(one->ndim, GatheredParameter::kMostDims));
        made.dtype = info(one->dtype).name;
        made.op = one->op != nullptr ? one->op->name : "";
        place(made.location, one->stack);
        made.changed = one->changed;
        made.needs_gradient = one->needs_gradient;
        made.feeds = one->next >= 0;
        made.feeds_trained = comes_to_trained(*one);
        made.initial = one->initial == Initial::Random ? "random" : one->initial == Initial::Zeros ? "zeros" : "";
        place(made.made_at, one->made_at);
        place(made.detached_at, one->detached_at);
        made.reads = one->reads;
        made.passes = one->passes;
        made.of_module = one->of_module;
        // What was made later has no name: another optimizer may hold it.
        if (optimizers_found_ && !one->name.empty()) made.optimized = one->optimized;
#define NUMSAN_PARAMETER_SIGNAL(key, member, ...) made.member = series(one->member);
#include "host/diagnosis/signals.def"
    }
    for (const GatheredActivation& one : activations_) {
        ActivationSignals& made = out.activations.emplace_back();
        made.op = one.op->name;
        place(made.location, one.stack);
        made.call = one.call;
        if (one.parameter >= 0) made.parameter = position[&parameters_[static_cast<size_t>(one.parameter)]];
        made.feeds = one.feeds;
#define NUMSAN_ACTIVATION_SIGNAL(key, member, ...) made.member = series(one.member);
#include "host/diagnosis/signals.def"
    }
    for (const GatheredLoss& one : losses_) {
        LossSignals& made = out.losses.emplace_back();
        made.op = one.op->name;
        made.made_by = one.made_by != nullptr ? one.made_by->name : "";
        place(made.location, one.stack);
        place(made.made_at, one.made_at);
        made.steps = one.steps;
        made.raw_steps = one.raw_steps;
        made.row_sum = one.row_sum;
        made.classes = one.classes;
        made.labels = one.labels;
        made.same_labels = one.labels > 0 && one.same_labels;
        made.label = one.label;
        made.scale = one.scale;
    }
}

void SignalGatherer::forget() {
    parameters_.clear();
    std::fill(table_.begin(), table_.end(), int16_t(-1));
    std::fill(reads_.begin(), reads_.end(), Read{});
    activations_.clear();
    calls_.clear();
    losses_.clear();
    untrained_.clear();
    optimizers_found_ = false;
    negated_ = 0;
    negated_op_ = nullptr;
    loss_values_ = step_sizes_ = FixedSeries{};
    sampled_ = 0;
    loss_count_ = optimizer_steps_ = next_order_ = 0;
    left_out_.clear();
    scaled_ = false;
    roots_.clear();
    scalers_.clear();
    last_in_optimizer_ = OpSeq::None;
    first_losses_ = lowest_loss_ = 0;
    loss_places_.clear();
    backward_ = optimizer_ = 0;
    asked_ = false;
    growth_.forget();
    taken_ = 0;
    warnings_.clear();
}

static bool is_of_module(const std::string& name, const std::set<std::string_view>& modules) {
    const size_t dot = name.rfind('.');
    return dot != std::string::npos && modules.count(std::string_view(name).substr(0, dot)) > 0;
}

void SignalGatherer::name(const LiveNames& names) {
    std::set<std::string_view> modules;
    for (const auto& [module, its] : names.modules) modules.insert(its);
    const std::lock_guard<std::mutex> lock(mutex_);
    for (GatheredParameter& parameter : parameters_) {
        const auto found = names.tensors.find(parameter.impl);
        if (found == names.tensors.end() || found->second.role != LiveNames::TensorName::Role::Parameter) continue;
        if (found->second.storage != nullptr && found->second.storage != parameter.storage) continue;
        parameter.name = found->second.name;
        parameter.optimized = found->second.optimized;
        parameter.of_module = is_of_module(parameter.name, modules);
    }
    for (const auto& [impl, tensor] : names.tensors) {
        optimizers_found_ = optimizers_found_ || tensor.optimized;
        const auto is_this = [impl = impl](const GatheredParameter& one) { return one.impl == impl; };
        if (tensor.role == LiveNames::TensorName::Role::Parameter && tensor.storage != nullptr &&
            untrained_.size() < kMostParameters && std::none_of(parameters_.begin(), parameters_.end(), is_this))
            untrained_.emplace(tensor.storage,
                               Untrained{impl, tensor.name, tensor.optimized, is_of_module(tensor.name, modules)});
    }
}

}  // namespace numsan
