// A file that describes kernels: what is taken over can be asked for, and complaints are lines that show where.
#include "host/kernels/kernel_manifest.h"
#include "tests/fuzz/targets.h"

namespace numsan::fuzz {

void fuzz_kernel_manifest(std::string_view text) {
    std::vector<std::string> complaints;
    const KernelManifest manifest = KernelManifest::parse(text, "kernels.toml", complaints);
    require(manifest.size() > 0 || !complaints.empty() || text.find("kernel") != std::string_view::npos,
            "a file that describes nothing is complained of");
    require(complaints.size() <= 21, "the log is not flooded");
    for (const std::string& line : complaints) {
        require(line.starts_with("kernels: kernels.toml:"), "a complaint names the option and the file", line);
        require(one_safe_line(line), "a complaint is one safe line", line);
    }
    for (const std::string& symbol : manifest.symbols()) {
        const std::vector<KernelParameter>* const buffers = manifest.find(symbol);
        require(buffers != nullptr, "a kernel is found by its name", symbol);
        for (const KernelParameter& buffer : *buffers) {
            require(buffer.argument >= 0 && buffer.argument < KernelManifest::kMostArguments,
                    "an argument has a place");
            require(buffer.offset >= 0 && buffer.count >= 0, "nothing lies before an argument");
        }
    }
}

}  // namespace numsan::fuzz
