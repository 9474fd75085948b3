// Files that are either the old version or the new one, never half of it.
#pragma once

#include <optional>
#include <string>

namespace numsan {

/// Writes `text` to a temporary file beside `path`, then renames it over `path`. A symbolic link keeps pointing where
/// it points; what is no regular file (/dev/stdout, a pipe) is written directly. Returns what went wrong in one line,
/// with the system's reason; the old file is then untouched and the temporary one gone. No signal reaches the program.
/// [MT]
std::optional<std::string> write_atomically(const std::string& path, const std::string& text);

}  // namespace numsan
