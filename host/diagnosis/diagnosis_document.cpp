#include "host/diagnosis/diagnosis_document.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "host/diagnosis/diagnosis.h"
#include "host/diagnosis/gather/sampled_steps.h"
#include "host/diagnosis/gather/signal_gatherer.h"
#include "host/diagnosis/place_document.h"
#include "host/diagnosis/ranking.h"
#include "host/report/json_fields.h"
#include "host/report/json_writer.h"

namespace numsan {
namespace {

using fields::at;
using fields::finite_or_null;
using fields::Json;
using fields::list;
using fields::text_or_null;

Json series_document(const Series& series) {
    Json out = Json::array();
    for (const double value : series) out.push_back(finite_or_null(value));
    return out;
}

Json parameter_document(const ParameterSignals& one) {
    Json out = {{"name", text_or_null(one.name)},
                {"shape", one.shape},
                {"dtype", one.dtype},
                {"op", text_or_null(one.op)},
                {"location", place_document(one.location)},
                {"changed", one.changed},
                {"needs_gradient", one.needs_gradient},
                {"feeds", one.feeds},
                {"feeds_trained", one.feeds_trained},
                {"initial", text_or_null(one.initial)},
                {"made_at", place_document(one.made_at)},
                {"detached_at", place_document(one.detached_at)},
                {"reads", one.reads},
                {"passes", one.passes},
                {"of_module", one.of_module},
                {"optimized", one.optimized ? Json(*one.optimized) : Json(nullptr)}};
#define NUMSAN_PARAMETER_SIGNAL(key, member, ...) out[key] = series_document(one.member);
#include "host/diagnosis/signals.def"
    return out;
}

Json activation_document(const ActivationSignals& one) {
    Json out = {{"op", one.op},
                {"location", place_document(one.location)},
                {"call", one.call},
                {"parameter", one.parameter < 0 ? Json(nullptr) : Json(one.parameter)},
                {"feeds", one.feeds}};
#define NUMSAN_ACTIVATION_SIGNAL(key, member, ...) out[key] = series_document(one.member);
#include "host/diagnosis/signals.def"
    return out;
}

Json loss_document(const LossSignals& one) {
    return {{"op", one.op},
            {"made_by", text_or_null(one.made_by)},
            {"location", place_document(one.location)},
            {"made_at", place_document(one.made_at)},
            {"steps", one.steps},
            {"raw_steps", one.raw_steps},
            {"row_sum", finite_or_null(one.row_sum)},
            {"classes", one.classes},
            {"labels", one.labels},
            {"same_labels", one.same_labels},
            {"label", finite_or_null(one.label)},
            {"scale", finite_or_null(one.scale)}};
}

double number(const Json& object, const char* key) { return fields::real(object, key).value_or(NAN); }

bool flag(const Json& object, const char* key) { return at(object, key).is_boolean() && at(object, key).get<bool>(); }

/// As long as the sampled steps.
Series read_series(const Json& object, const char* key, size_t length) {
    Series series(length, NAN);
    const Json& values = list(object, key);
    for (size_t i = 0; i < length && i < values.size(); ++i) {
        if (values[i].is_number()) series[i] = values[i].get<double>();
    }
    return series;
}

}  // namespace

Json faults_document(const std::vector<Fault>& faults) {
    Json out = Json::array();
    for (const Fault& fault : faults) {
        const FaultInfo& row = info(fault.id);
        out.push_back({{"code", row.code},
                       {"slug", row.slug},
                       {"name", row.name},
                       {"confidence", fault.confidence},
                       {"by", fault.learned ? "model" : "rule"},
                       {"location", place_document(fault.location)},
                       {"evidence", fault.evidence},
                       {"help", fault.help},
                       {"signals", fault.signals}});
    }
    return out;
}

Json diagnosis_document(const Signals& signals) {
    Json out = Json::object();
    out["faults"] = Json::array();
    out["sampling"] = {{"steps", "0 to " + std::to_string(kFirstSampled - 1) + ", then powers of two"},
                       {"elements", SignalGatherer::kElements},
                       {"elements_of_updates", GatheredParameter::kElements},
                       {"left_out", signals.left_out}};
    out["early_warnings"] = Json::array();
    for (const EarlyWarning& one : signals.warnings) out["early_warnings"].push_back(early_warning_document(one));
    out["steps"] = signals.steps;
#define NUMSAN_RUN_SIGNAL(key, member, ...) out[key] = series_document(signals.member);
#include "host/diagnosis/signals.def"
    out["trend"] = {{"count", signals.trend.count},
                    {"places", signals.trend.places},
                    {"first", finite_or_null(signals.trend.first)},
                    {"last", finite_or_null(signals.trend.last)},
                    {"lowest", finite_or_null(signals.trend.lowest)},
                    {"negated", signals.trend.negated},
                    {"negated_op", text_or_null(signals.trend.negated_op)}};
    out["optimizer"] = {{"steps", signals.optimizer_steps}, {"location", place_document(signals.optimizer)}};
    out["backward"] = {{"location", place_document(signals.backward)}};
    out["parameters"] = Json::array();
    for (const ParameterSignals& one : signals.parameters) out["parameters"].push_back(parameter_document(one));
    out["activations"] = Json::array();
    for (const ActivationSignals& one : signals.activations) out["activations"].push_back(activation_document(one));
    out["losses"] = Json::array();
    for (const LossSignals& one : signals.losses) out["losses"].push_back(loss_document(one));
    return out;
}

std::optional<Signals> read_signals(const Json& section) {
    if (!section.is_object() || !at(section, "steps").is_array()) return {};
    Signals signals;
    for (const Json& step : list(section, "steps")) {
        const auto value = fields::integer(step);
        if (!value || *value < 0 || *value > kMostWhole || signals.steps.size() >= kMostSampled) return {};
        signals.steps.push_back(static_cast<int64_t>(*value));
    }
    const size_t length = signals.steps.size();
#define NUMSAN_RUN_SIGNAL(key, member, ...) signals.member = read_series(section, key, length);
#include "host/diagnosis/signals.def"
    const Json& trend = at(section, "trend");
    signals.trend = {whole_number(trend, "count"),     whole_number(trend, "places"),
                     number(trend, "first"),           number(trend, "last"),
                     number(trend, "lowest"),          whole_number(trend, "negated"),
                     fields::text(trend, "negated_op")};
    signals.optimizer_steps = whole_number(at(section, "optimizer"), "steps");
    signals.optimizer = read_place(at(section, "optimizer"), "location");
    signals.backward = read_place(at(section, "backward"), "location");
    signals.left_out = whole_number(at(section, "sampling"), "left_out");
    for (const Json& one : list(section, "early_warnings")) signals.warnings.push_back(read_early_warning(one));
    for (const Json& one : list(section, "parameters")) {
        ParameterSignals made;
        made.name = fields::text(one, "name");
        for (const Json& size : list(one, "shape"))
            made.shape.push_back(size.is_number_integer() ? size.get<int64_t>() : 0);
        made.dtype = fields::text(one, "dtype");
        made.op = fields::text(one, "op");
        made.location = read_place(one, "location");
        made.changed = flag(one, "changed");
        made.needs_gradient = !at(one, "needs_gradient").is_boolean() || flag(one, "needs_gradient");
        made.feeds = flag(one, "feeds");
        made.feeds_trained = flag(one, "feeds_trained");
        made.initial = fields::text(one, "initial");
        made.made_at = read_place(one, "made_at");
        made.detached_at = read_place(one, "detached_at");
        made.reads = whole_number(one, "reads");
        made.passes = whole_number(one, "passes");
        made.of_module = !at(one, "of_module").is_boolean() || flag(one, "of_module");
        if (at(one, "optimized").is_boolean()) made.optimized = flag(one, "optimized");
#define NUMSAN_PARAMETER_SIGNAL(key, member, ...) made.member = read_series(one, key, length);
#include "host/diagnosis/signals.def"
        signals.parameters.push_back(std::move(made));
    }
    for (const Json& one : list(section, "activations")) {
        ActivationSignals made;
        made.op = fields::text(one, "op");
        made.location = read_place(one, "location");
        made.call = static_cast<int>(whole_number(one, "call"));
        const int64_t parameter = whole_number(one, "parameter", -1);
        made.parameter = parameter < INT32_MAX ? static_cast<int>(parameter) : -1;
        made.feeds = flag(one, "feeds");
#define NUMSAN_ACTIVATION_SIGNAL(key, member, ...) made.member = read_series(one, key, length);
#include "host/diagnosis/signals.def"
        signals.activations.push_back(std::move(made));
    }
    for (const Json& one : list(section, "losses")) {
        LossSignals made;
        made.op = fields::text(one, "op");
        made.made_by = fields::text(one, "made_by");
        made.location = read_place(one, "location");
        made.made_at = read_place(one, "made_at");
        made.steps = whole_number(one, "steps");
        made.raw_steps = whole_number(one, "raw_steps");
        made.row_sum = number(one, "row_sum");
        made.classes = whole_number(one, "classes");
        made.labels = whole_number(one, "labels");
        made.same_labels = flag(one, "same_labels");
        made.label = number(one, "label");
        made.scale = number(one, "scale");
        signals.losses.push_back(std::move(made));
    }
    return signals;
}

Diagnosis diagnose(const Signals& signals) {
    Json document = diagnosis_document(signals);
    const Signals kept = read_signals(document).value_or(Signals{});
    const std::vector<Fault> faults = rank_faults(kept);
    document["faults"] = faults_document(faults);
    return {document_text(document), faults, kept};
}

}  // namespace numsan
