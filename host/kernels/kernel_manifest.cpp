#include "host/kernels/kernel_manifest.h"

#include <sys/stat.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

namespace numsan {
namespace {

using Use = KernelParameter::Use;

/// What is wrong, and where it stands.
struct Wrong {
    std::string what;
    toml::source_position at;
};

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string types() {
    std::string all;
    for (int i = 0; i < kDTypeCount; ++i) all += (all.empty() ? "" : ", ") + std::string(info(DType(i)).name);
    return all;
}

void check_keys(const toml::table& table, std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : table) {
        if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
        std::string names;
        for (const std::string_view name : known) names += (names.empty() ? "" : ", ") + std::string(name);
        throw Wrong{"unknown key " + quoted(key.str()) + ": expected one of " + names, key.source().begin};
    }
}

/// None where the key is missing.
std::optional<int64_t> whole_number(const toml::table& table, const char* key, int64_t smallest, int64_t largest) {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return std::nullopt;
    const std::optional<int64_t> number = node->value_exact<int64_t>();
    if (!number || *number < smallest || *number > largest)
        throw Wrong{
            quoted(key) + " is no whole number of " + std::to_string(smallest) + " to " + std::to_string(largest),
            node->source().begin};
    return number;
}

KernelParameter buffer_of(const toml::node& node, Use use) {
    const toml::table* const table = node.as_table();
    if (table == nullptr)
        throw Wrong{"a buffer is no table: expected { argument = 0, type = \"float32\" }", node.source().begin};
    check_keys(*table, {"argument", "type", "count", "offset"});
    const auto argument = whole_number(*table, "argument", 0, KernelManifest::kMostArguments - 1);
    if (!argument)
        throw Wrong{"a buffer has no 'argument': its place among those of the kernel, from 0", node.source().begin};
    const std::optional<std::string_view> type = (*table)["type"].value<std::string_view>();
    const std::optional<DType> dtype = type ? dtype_of(*type) : std::nullopt;
    if (!dtype) throw Wrong{"a buffer has no 'type' that is one of " + types(), node.source().begin};
    KernelParameter parameter{use, *dtype};
    parameter.argument = static_cast<int16_t>(*argument);
    parameter.offset = static_cast<int32_t>(whole_number(*table, "offset", 0, 1 << 15).value_or(0));
    parameter.count = whole_number(*table, "count", 1, std::numeric_limits<int64_t>::max() / 16).value_or(0);
    return parameter;
}

void add_buffers(const toml::table& kernel, const char* key, Use use, std::vector<KernelParameter>& parameters) {
    const toml::node* const node = kernel.get(key);
    if (node == nullptr) return;
    const toml::array* const list = node->as_array();
    if (list == nullptr)
        throw Wrong{quoted(key) + " is no list: expected [{ argument = 0, type = \"float32\" }]", node->source().begin};
    for (const toml::node& buffer : *list) parameters.push_back(buffer_of(buffer, use));
}

std::pair<std::string, std::vector<KernelParameter>> kernel_of(const toml::node& node) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) throw Wrong{"'kernel' is no list of tables: expected [[kernel]]", node.source().begin};
    check_keys(*table, {"symbol", "writes", "reads"});
    const std::optional<std::string> symbol = (*table)["symbol"].value<std::string>();
    if (!symbol || symbol->empty()) throw Wrong{"a kernel has no 'symbol', its name", node.source().begin};
    std::pair<std::string, std::vector<KernelParameter>> made{*symbol, {}};
    add_buffers(*table, "writes", Use::Writes, made.second);
    add_buffers(*table, "reads", Use::Reads, made.second);
    return made;
}

std::string complaint(const std::string& name, const toml::source_position& at, std::string_view what) {
    return "kernels: " + name + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " +
           std::string(what);
}

}  // namespace

KernelManifest KernelManifest::parse(std::string_view text, const std::string& name,
                                     std::vector<std::string>& complaints) {
    KernelManifest manifest;
    try {
        const toml::table document = toml::parse(text);
        check_keys(document, {"kernel"});
        const toml::node* const kernels = document.get("kernel");
        if (kernels == nullptr) throw Wrong{"no kernel is described: expected tables [[kernel]]", {1, 1}};
        if (!kernels->is_array())
            throw Wrong{"'kernel' is no list of tables: expected [[kernel]]", kernels->source().begin};
        for (const toml::node& node : *kernels->as_array()) {
            try {
                auto [symbol, parameters] = kernel_of(node);
                manifest.kernels_[symbol] = std::move(parameters);
            } catch (const Wrong& wrong) {
                complaints.push_back(complaint(name, wrong.at, wrong.what + "; the kernel is left out"));
            }
        }
    } catch (const toml::parse_error& error) {
        complaints.push_back(complaint(name, error.source().begin, error.description()) + "; all kernels are left out");
    } catch (const Wrong& wrong) {
        complaints.push_back(complaint(name, wrong.at, wrong.what) + "; all kernels are left out");
    }
    return manifest;
}

KernelManifest KernelManifest::read(const std::string& path, std::vector<std::string>& complaints) {
    if (path.empty()) return {};
    struct stat facts {};
    std::string problem;
    if (stat(path.c_str(), &facts) != 0)
        problem = std::string("cannot be read: ") + std::strerror(errno);
    else if (!S_ISREG(facts.st_mode))
        problem = "is not a regular file";
    else if (static_cast<size_t>(facts.st_size) > kLargestFile)
        problem = "is larger than 1 MiB";
    std::ostringstream text;
    if (problem.empty()) {
        std::ifstream file(path);
        text << file.rdbuf();
        if (!file) problem = "cannot be read";
    }
    if (problem.empty()) return parse(text.str(), path, complaints);
    complaints.push_back("kernels: " + quoted(path) + " " + problem + "; no kernel is described");
    return {};
}

const std::vector<KernelParameter>* KernelManifest::find(std::string_view symbol, std::string_view name) const {
    for (const std::string_view one : {symbol, name}) {
        if (const auto found = kernels_.find(one); found != kernels_.end()) return &found->second;
    }
    return nullptr;
}

}  // namespace numsan
