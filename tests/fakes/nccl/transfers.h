// What ranks of the fake NCCL do together: each runs its part on its own stream, and waits there for the others.
#pragma once

#include <nccl.h>

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace fake_nccl {

enum class What { AllReduce, Reduce, ReduceScatter, Broadcast, AllGather, AlltoAll, Gather, Scatter, Send, Receive };

/// One call of one rank.
struct Part {
    What what;
    const void* send;
    void* receive;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t reduction;
    int peer;         ///< root, or the other of two
    uint64_t number;  ///< among the collectives of the communicator, or those between the two ranks
};

/// Where the ranks of a communicator meet. [MT]
class Clique {
  public:
    explicit Clique(int ranks) : ranks_(ranks) {}

    int ranks() const { return ranks_; }
    /// Runs a rank's parts of a group: all of them are offered before any is waited for.
    void run(int rank, const std::vector<Part>& parts);

  private:
    using Key = std::tuple<int, int, uint64_t>;  ///< sender and receiver, -1 for all, and the number
    struct Meeting {
        std::map<int, Part> offered;
        int done = 0;
    };
    Key key_of(int rank, const Part& part) const;

    const int ranks_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<Key, Meeting> meetings_;
};

/// Bytes of an element.
size_t bytes_of(ncclDataType_t type);

}  // namespace fake_nccl

struct ncclComm {
    std::shared_ptr<fake_nccl::Clique> clique;
    int rank = 0, device = 0;
    uint64_t collectives = 0;
    std::map<std::pair<int, int>, uint64_t> between;  ///< calls from one rank to the other
};
