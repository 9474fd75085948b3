#include "host/dump/dump_document.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "host/base/version.h"
#include "host/report/json_writer.h"

namespace numsan {
namespace {

using Json = nlohmann::ordered_json;

/// One tensor of the file.
struct Stored {
    std::string name;
    const HeldTensor* tensor;
};

Json number_or_name(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
}

Json numbers(const int64_t* values, int32_t count) { return Json(std::vector<int64_t>(values, values + count)); }

/// JSON has no number that is not finite, and no tensors: those go into `stored` as PREFIX.0, PREFIX.1, ...
class Values {
  public:
    Values(const HeldView& view, std::string prefix, int64_t limit, std::vector<Stored>& stored)
        : view_(view), prefix_(std::move(prefix)), limit_(limit), stored_(stored) {}

    Json all(const HeldValue* values, int32_t count) {
        Json out = Json::array();
        at_ = values;
        for (const HeldValue* end = values + count; at_ < end;) out.push_back(next());
        return out;
    }

  private:
    Json next() {
        const HeldValue& value = *at_++;
        Json out = Json::object();
        if (value.name != nullptr) out["name"] = value.name;
        switch (value.kind) {
            case HeldKind::None: out["kind"] = "none"; break;
            case HeldKind::Tensor: tensor(out, value); break;
            case HeldKind::Number:
                out["kind"] = "number";
                out["value"] = number_or_name(value.number);
                break;
            case HeldKind::Integer:
                out["kind"] = "number";
                out["value"] = value.integer;
                break;
            case HeldKind::Complex:
                out["kind"] = "number";
                out["value"] = {{"re", number_or_name(value.number)}, {"im", number_or_name(value.imaginary)}};
                break;
            case HeldKind::Bool:
                out["kind"] = "bool";
                out["value"] = value.integer != 0;
                break;
            case HeldKind::List: {
                out["kind"] = "list";
                Json items = Json::array();
                for (int64_t i = 0; i < value.items; ++i) items.push_back(next());
                out["items"] = std::move(items);
                break;
            }
            case HeldKind::String: text(out, "string", value); break;
            case HeldKind::DType: text(out, "dtype", value); break;
            case HeldKind::Device: text(out, "device", value); break;
            case HeldKind::Layout: text(out, "layout", value); break;
            case HeldKind::MemoryFormat: text(out, "memory_format", value); break;
            case HeldKind::Generator: text(out, "generator", value); break;
            case HeldKind::LeftOut:
                out["kind"] = "left_out";
                out["why"] = value.text != nullptr
                                 ? std::string(value.text)
                                 : bytes_text(value.bytes) + " are over dump_limit=" + text_of_bytes(limit_);
                geometry(out, value);
                break;
        }
        return out;
    }

    static void text(Json& out, const char* kind, const HeldValue& value) {
        out["kind"] = kind;
        out["value"] = value.text;
    }

    static void geometry(Json& out, const HeldValue& value) {
        if (value.dtype == nullptr) return;
        out["dtype"] = value.dtype;
        out["sizes"] = numbers(value.sizes, value.ndim);
        out["strides"] = numbers(value.strides, value.ndim);
        out["device"] = value.device;
        out["requires_grad"] = value.requires_grad;
    }

    void tensor(Json& out, const HeldValue& value) {
        const auto index = static_cast<size_t>(value.tensor);
        if (names_.size() <= index) names_.resize(index + 1);
        const bool known = !names_[index].empty();
        if (!known) {
            names_[index] = prefix_ + "." + std::to_string(stored_count_++);
            stored_.push_back({names_[index], &view_.tensors[index]});
        }
        out["kind"] = "tensor";
        out["tensor"] = names_[index];
        geometry(out, value);
        if (known) out["same_as"] = names_[index];
        if (value.overwritten) out["overwritten"] = true;
    }

    const HeldView& view_;
    const std::string prefix_;
    const int64_t limit_;
    std::vector<Stored>& stored_;
    std::vector<std::string> names_;
    size_t stored_count_ = 0;
    const HeldValue* at_ = nullptr;
};

Json call(const HeldView& view, const std::string& prefix, int64_t limit, std::vector<Stored>& stored) {
    Json out = Json::object();
    out["name"] = view.name;
    out["overload"] = view.overload;
    out["schema"] = view.schema;
    out["args"] = Values(view, prefix + "arg", limit, stored).all(view.arguments, view.argument_count);
    out["results"] = Values(view, prefix + "result", limit, stored).all(view.results, view.result_count);
    return out;
}

constexpr int64_t kLargestElement = 16;  // complex128

/// What the place of a tensor is a multiple of: of a power of two that its elements fit into, whatever their type is.
int64_t alignment(const HeldTensor& tensor) { return std::min(tensor.bytes & -tensor.bytes, kLargestElement); }

Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

}  // namespace

std::string bytes_text(int64_t bytes) {
    if (bytes < 1000) return std::to_string(bytes) + " bytes";
    const char* const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    auto value = static_cast<double>(bytes);
    size_t unit = 0;
    for (value /= 1000; value >= 1000 && unit + 1 < std::size(units); value /= 1000) ++unit;
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %s", value, units[unit]);
    return text;
}

/// Where an op ran: a device where anything of it lies there, numbers of the host's beside it or not.
std::string device_of(const HeldView& op) {
    const auto first = [](const HeldValue* values, int32_t count) {
        const auto on_device = [](const HeldValue& value) {
            return value.impl != nullptr && value.device != nullptr && std::string_view(value.device) != "cpu";
        };
        const HeldValue* const found = std::find_if(values, values + count, on_device);
        return found != values + count ? found->device : nullptr;
    };
    const char* device = first(op.results, op.result_count);
    if (device == nullptr) device = first(op.arguments, op.argument_count);
    return device != nullptr ? device : "cpu";
}

DumpFile dump_file(const DumpContent& content, const Finding& finding, const RunSummary& run) {
    std::vector<Stored> stored;
    Json dump = Json::object();
    dump["dump_version"] = 1;
    dump["numsan"] = NUMSAN_VERSION;
    dump["torch"] = or_null(run.framework_version);
    dump["python"] = or_null(run.python_version);
    dump["interpreter"] = or_null(run.python_path);
    dump["device"] = device_of(*content.op);
    dump["threads"] = content.op->threads;
    dump["op"] = call(*content.op, "", content.limit, stored);
    dump["forward"] =
        content.forward != nullptr ? call(*content.forward, "forward.", content.limit, stored) : Json(nullptr);
    dump["node"] = content.node.empty() ? Json(nullptr) : Json(content.node);
    dump["rng"] = Json::object();
    if (content.op->generator != nullptr) {
        dump["rng"]["cpu"] = "rng.cpu";
        stored.push_back({"rng.cpu", content.op->generator});
    }
    dump["finding"] = finding_document(finding);

    // Readers map the file, and torch reads a complex number only at a multiple of its size.
    std::stable_sort(stored.begin(), stored.end(),
                     [](const Stored& a, const Stored& b) { return alignment(*a.tensor) > alignment(*b.tensor); });
    Json header = Json::object();
    header["__metadata__"] = {{"format", "pt"},
                              {"numsan_dump", dump.dump(-1, ' ', false, Json::error_handler_t::replace)}};
    DumpFile file;
    int64_t offset = 0;
    for (const Stored& one : stored) {
        header[one.name] = {{"dtype", one.tensor->format},
                            {"shape", numbers(one.tensor->sizes, one.tensor->ndim)},
                            {"data_offsets", {offset, offset + one.tensor->bytes}}};
        offset += one.tensor->bytes;
        file.parts.push_back({one.tensor->data, static_cast<size_t>(one.tensor->bytes)});
    }
    std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
    constexpr size_t kLength = 8;  // bytes of the header's length, before it
    text.resize((kLength + text.size() + kLargestElement - 1) / kLargestElement * kLargestElement - kLength, ' ');
    for (size_t i = 0; i < kLength; ++i)
        file.header += static_cast<char>(static_cast<uint64_t>(text.size()) >> (8 * i) & 255);
    file.header += text;
    file.parts.insert(file.parts.begin(), {file.header.data(), file.header.size()});
    return file;
}

}  // namespace numsan
