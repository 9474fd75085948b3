// Why an adapter could not be had, kept beside its place in the cache: other processes need not find out themselves.
#pragma once

#include <string>
#include <vector>

namespace numsan {

/// A file that says why the adapter cannot be built or loaded. Good for as long as what it was made from is unchanged.
class AdapterFailure {
  public:
    /// Of the adapter in `adapter`, made from these: words matter as they are, files by their time and size too.
    AdapterFailure(std::string adapter, const std::vector<std::string>& words, const std::vector<std::string>& files);

    /// What record() was given, by this process or another; empty: nothing, or of other files.
    std::string reason() const;
    /// Renamed into place; where the folder cannot be written the next process tries for itself.
    void record(const std::string& why) const;
    void remove() const;
    const std::string& path() const { return path_; }

  private:
    const std::string adapter_;
    const std::string path_;
    const std::string stamp_;  ///< first line of the file
};

}  // namespace numsan
