// What reports say of tensors.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/finding/tensor_fact.h"
#include "host/log/format.h"
#include "host/report/json_fields.h"
#include "host/report/json_writer.h"

namespace numsan {
namespace {

using fields::finite_or_null;
using fields::Json;

/// Position of a row-major index in a shape.
Json logical_index(int64_t flat, const std::vector<int64_t>& shape) {
    std::vector<int64_t> index(shape.size());
    for (size_t i = shape.size(); i-- > 0;) {
        const int64_t size = std::max<int64_t>(shape[i], 1);
        index[i] = flat % size;
        flat /= size;
    }
    return index;
}

const char* kind_text(KindSet kind) {
    if (kind & kNaN) return "nan";
    return kind & kNegInf ? "-inf" : "inf";
}

Json first_bad_document(const TensorFact& tensor) {
    const Health& health = tensor.health;
    if (health.first_bad < 0 || !(health.nan || health.pos_inf || health.neg_inf)) return nullptr;
    const int digits = 2 * info(tensor.dtype).lane_bytes;
    return {{"index", logical_index(health.first_bad, tensor.shape)},
            {"value", kind_text(health.first_bad_kind)},
            {"bits", "0x" + hex(health.first_bad_bits, digits)}};
}

int64_t shape_elements(const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return count;
}

Json tensor_document(const TensorFact& tensor) {
    const Health& health = tensor.health;
    const bool seen = health.elements > 0;
    const bool finite = seen && health.finite > 0;
    Json out = Json::object();
    out["name"] = tensor.name;
    out["dtype"] = info(tensor.dtype).name;
    out["shape"] = tensor.shape;
    out["device"] = tensor.device;
    out["elements"] = seen ? health.elements : shape_elements(tensor.shape);
    out["nan"] = health.nan;
    out["pos_inf"] = health.pos_inf;
    out["neg_inf"] = health.neg_inf;
    out["subnormal"] = health.subnormal;
    out["zero"] = health.zero;
    out["absmax"] = finite ? finite_or_null(health.absmax) : Json(nullptr);
    out["absmin"] = finite && health.absmin > 0 ? finite_or_null(health.absmin) : Json(nullptr);
    out["min"] = finite ? finite_or_null(health.min) : Json(nullptr);
    out["max"] = finite ? finite_or_null(health.max) : Json(nullptr);
    out["first_bad"] = seen ? first_bad_document(tensor) : Json(nullptr);
    out["exact"] = tensor.exact && (seen || shape_elements(tensor.shape) == 0);
    if (!tensor.remark.empty()) out["remark"] = tensor.remark;
    if (!tensor.exponents.counts.empty())
        out["exponents"] = {{"first", tensor.exponents.first}, {"counts", tensor.exponents.counts}};
    return out;
}

}  // namespace

Json tensors_document(const std::vector<TensorFact>& tensors) {
    Json out = Json::array();
    for (const TensorFact& tensor : tensors) out.push_back(tensor_document(tensor));
    return out;
}

}  // namespace numsan
