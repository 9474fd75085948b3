// What the names of scopes say that torch and a program put around operators.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace numsan {

inline bool is_optimizer_step(std::string_view name) { return name.starts_with("Optimizer.step#"); }
inline bool is_zero_grad(std::string_view name) { return name.starts_with("Optimizer.zero_grad#"); }
inline bool is_data_loader(std::string_view name) { return name.starts_with("enumerate(DataLoader)#"); }
inline bool is_ignore(std::string_view name) { return name == "numsan:ignore"; }

/// What the program tells of a step's loss is the rest of such a name, a number.
inline std::optional<double> told_loss(std::string_view text) {
    constexpr std::string_view kPrefix = "numsan:loss#";
    double value = 0;
    if (!text.starts_with(kPrefix)) return {};
    const auto [end, error] = std::from_chars(text.data() + kPrefix.size(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace numsan
