// A small text file that a user names in an option.
#pragma once

#include <cstddef>
#include <string>

namespace numsan {

struct UserFile {
    static constexpr size_t kLargest = size_t(1) << 20;  ///< bytes

    std::string text;
    std::string problem;  ///< why it was not read, after its name: "is larger than 1 MiB"; empty: it was
};

/// Reads a regular file of at most UserFile::kLargest bytes; does not wait for the writer of a pipe. Throws
/// std::bad_alloc. [MT]
UserFile read_user_file(const std::string& path);

}  // namespace numsan
