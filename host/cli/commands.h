// The commands of the numsan executable. Each returns the process's exit status and prints its own errors to stderr.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace numsan::cli {

inline constexpr int kOk = 0;
inline constexpr int kLimited = 1;  ///< doctor: something would not be seen
inline constexpr int kDiffers = 1;  ///< replay: another report
inline constexpr int kUsage = 2;    ///< wrong usage, unreadable file, cannot work

/// Options given as flags, in order, as key and value.
using OptionFlags = std::vector<std::pair<std::string, std::string>>;

/// Replaces this process by `command` under the library; returns only when that fails.
int run(const OptionFlags& flags, const std::vector<std::string>& command);

/// Shows or converts reports; `output` empty is stdout.
int report(const std::vector<std::string>& files, const std::string& format, const std::string& output,
           const std::string& color);

int explain(const std::string& word);

/// Makes the report of a recording again; `output` empty writes it nowhere.
int replay(const std::string& path, const std::string& output);

/// `command` may be empty: python3 is then what would run.
int doctor(const std::vector<std::string>& command);

/// Tables for the documentation: options, categories, mechanisms.
int table(const std::string& name);

/// One line "numsan: ..." on stderr.
void complain(const std::string& line);

}  // namespace numsan::cli
