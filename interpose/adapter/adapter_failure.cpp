#include "interpose/adapter/adapter_failure.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "host/options/trusted_path.h"
#include "interpose/adapter/adapter_cache.h"

namespace numsan {
namespace {

std::string stamp_of(const std::vector<std::string>& words, const std::vector<std::string>& files) {
    Fnv1a made_from;
    for (const std::string& word : words) made_from.add(word);
    for (const std::string& file : files) {
        struct stat status {};
        made_from.add(file);
        if (stat(file.c_str(), &status) != 0) continue;
        made_from.add(&status.st_size, sizeof status.st_size);
        made_from.add(&status.st_mtim.tv_sec, sizeof status.st_mtim.tv_sec);
        made_from.add(&status.st_mtim.tv_nsec, sizeof status.st_mtim.tv_nsec);
    }
    return "numsan adapter failure " + std::to_string(made_from.value());
}

}  // namespace

AdapterFailure::AdapterFailure(std::string adapter, const std::vector<std::string>& words,
                               const std::vector<std::string>& files)
    : adapter_(std::move(adapter)), path_(adapter_ + ".failed"), stamp_(stamp_of(words, files)) {}

std::string AdapterFailure::reason() const {
    if (trusted_file(path_).trust != Trust::Yes) return {};
    std::ifstream file(path_);
    std::string stamp, reason;
    std::getline(file, stamp);
    std::getline(file, reason);
    return stamp == stamp_ ? reason : std::string();
}

void AdapterFailure::record(const std::string& why) const {
    std::string line = why;
    std::replace(line.begin(), line.end(), '\n', ' ');
    const std::string temporary = adapter_ + kTemporaryMark + std::to_string(getpid()) + ".failed";
    unlink(temporary.c_str());
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file << stamp_ << '\n' << line << '\n';
    file.close();
    const bool written = file.good() && chmod(temporary.c_str(), S_IRUSR | S_IWUSR) == 0;
    if (!written || rename(temporary.c_str(), path_.c_str()) != 0) unlink(temporary.c_str());
}

void AdapterFailure::remove() const { unlink(path_.c_str()); }

}  // namespace numsan
