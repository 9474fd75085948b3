// What an adapter is made from, how it is compiled and what its file is called: the same for one that is compiled on
// first use and for one that was made ahead of time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace numsan {

/// A reason to do without the adapter, in one line.
struct NoAdapter {
    std::string reason;
};

/// What is known of a torch on disk.
struct TorchInstall {
    std::string root;
    std::string cpu_library;  ///< full path of libtorch_cpu.so
    std::string version;      ///< from version.py or build-version; "unknown" when neither says
    std::string commit;       ///< from version.py; empty when it does not say
    bool has_headers = false;
};

/// Describes the torch that the library at `cpu_library` belongs to.
TorchInstall describe_torch(const std::string& cpu_library);

class AdapterRecipe {
  public:
    /// `sources` is the folder of the adapter's sources. Throws NoAdapter where none can be made for this torch.
    AdapterRecipe(TorchInstall torch, std::filesystem::path sources);

    /// "libnumsan_torch-2.11.0+cu130-<build>-<commit of torch>.so": another torch, other strings or another numsan is
    /// another adapter.
    std::string prebuilt_name() const;
    /// With the place of torch instead: one that its user built may change where it lies.
    std::string cached_name() const;

    /// Throws NoAdapter without a compiler, headers or sources.
    std::vector<std::string> compile_command(const std::string& output) const;

    const TorchInstall& torch() const { return torch_; }

  private:
    TorchInstall torch_;
    std::filesystem::path sources_;
    std::string abi_;    ///< the flag that says which strings torch's functions take
    std::string build_;  ///< hash of all that goes into the compiler but torch
};

}  // namespace numsan
