// Files that are either the old version or the new one, never half of it, and files that only grow.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace numsan {

/// Writes `text` to a temporary file beside `path`, then renames it over `path`. A symbolic link keeps pointing where
/// it points; what is no regular file (/dev/stdout, a pipe) is written directly. Returns what went wrong in one line,
/// with the system's reason; the old file is then untouched and the temporary one gone. No signal reaches the program.
/// A link that belongs neither to this user nor to root is not followed, nor is such a pipe in a folder that everybody
/// may write: in /tmp another user could choose our files otherwise. [MT]
std::optional<std::string> write_atomically(const std::string& path, const std::string& text);

/// A piece of a file; `data` null: so many zeros, which take no room on disk where the file system can.
struct FilePart {
    const void* data;
    size_t bytes;
};

/// The same of a new file of many pieces.
std::optional<std::string> write_atomically(const std::string& path, const std::vector<FilePart>& parts);

/// A descriptor that appends to `path`, which is made if need be (0644 less the umask), under the same rule about what
/// other users put there; -1 when there is none. [MT]
int open_to_append(const std::string& path);

}  // namespace numsan
