// Which frame of a stack is the line to look at: torch and the standard library are not, the program and its libraries
// are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/finding/place.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// Whose code a file is.
enum class Origin { Torch, StandardLibrary, Library, User };

class PlaceFinder {
  public:
    /// The folder of the loaded torch, and the one that the interpreter's own modules lie in; empty when unknown.
    explicit PlaceFinder(std::string torch_root, std::string standard_library = "")
        : torch_root_(std::move(torch_root)), standard_library_(std::move(standard_library)) {}

    Origin origin(const SourceFrame& frame) const;

    /// The innermost frame outside torch and the standard library, from `first` outwards up to and without `last`.
    const SourceFrame* innermost(const std::vector<SourceFrame>& stack, size_t first = 0,
                                 size_t last = ~size_t(0)) const;

    /// The innermost frame of the user's own code, not a library's.
    const SourceFrame* innermost_user(const std::vector<SourceFrame>& stack, size_t first = 0,
                                      size_t last = ~size_t(0)) const;

    /// Where torch's backward engine was entered: frames before it run inside the backward pass. size() when it is not
    /// there.
    static size_t backward_entry(const std::vector<SourceFrame>& stack);

    /// The frame with the text of its line: what Python keeps of it where that was learned, else read from the file.
    Place place(const SourceFrame& frame) const;

    /// Lines above this one in its function that read the same.
    int same_lines_above(const Place& place) const;

    /// Text of lines that lie in no file. A few thousand are kept.
    void learn(const LiveNames::Sources& sources);

  private:
    bool is_standard(const std::string& file) const;
    const KeptSource* kept(const std::string& file, int line, const std::string& function) const;

    std::string torch_root_;
    std::string standard_library_;
    LiveNames::Sources sources_;
};

/// A file that torch.compile wrote: by its name, or by the folder that TORCHINDUCTOR_CACHE_DIR names. [MT]
bool is_generated(const std::string& file);
/// The name of Python code of numsan's own: it runs in the place of torch's.
inline constexpr const char* kOwnCode = "<numsan>";
/// A frame of one of the functions of interpose/python/scripts that torch.compile is to take for torch's own. [MT]
bool is_region_frame(const SourceFrame& frame, std::string_view function);
/// The name of code that torch.fx wrote, which lies in no file. [MT]
bool is_from_fx(const std::string& file);

/// Text of one line of a file, without blanks around it; nothing when it cannot be read.
std::optional<std::string> source_line(const std::string& file, int line);

/// The lines of a file from `first` to `last`, which may end before; as they stand there, but for their length. Empty
/// when it cannot be read.
std::vector<std::string> source_lines(const std::string& file, int first, int last);

}  // namespace numsan
