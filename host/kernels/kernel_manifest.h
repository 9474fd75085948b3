// What a user says of kernels whose names do not tell what they are given: a TOML file, the option `kernels`.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "host/kernels/kernel_signature.h"

namespace numsan {

/// Tables `[[kernel]]` with `symbol`, and lists `writes` and `reads` of buffers:
/// `{ argument = 0, type = "float32", count = 256, offset = 8 }`. Const members are [MT].
class KernelManifest {
  public:
    static constexpr int kMostArguments = 4096;  ///< of a kernel

    /// A kernel that is described badly makes a complaint, and is left out: reading goes on at the next line with "[[".
    /// `name` is what complaints call the text. Throws std::bad_alloc.
    static KernelManifest parse(std::string_view text, const std::string& name, std::vector<std::string>& complaints);
    /// Of a file; of none that can be read: one complaint, and no kernel. An empty path: no kernel.
    static KernelManifest read(const std::string& path, std::vector<std::string>& complaints);

    /// The buffers of the kernel with that symbol; null: none is described by it.
    const std::vector<KernelParameter>* find(std::string_view symbol) const;
    size_t size() const { return kernels_.size(); }
    /// Of all kernels, in order.
    std::vector<std::string> symbols() const;

  private:
    std::map<std::string, std::vector<KernelParameter>, std::less<>> kernels_;
};

}  // namespace numsan
