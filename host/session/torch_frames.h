// Recognises parts of torch by the Python frames of a stack.
#pragma once

#include <atomic>
#include <ctime>

#include "host/session/python_source.h"
#include "host/track/stack_facts.h"

namespace numsan {

/// Answers from the frames of torch's own Python files; a native stack has none, so there any loss will do.
class TorchFrames : public StackFacts {
  public:
    explicit TorchFrames(const StackSource& stacks) : stacks_(stacks) {}
    ~TorchFrames() override { delete sources_.load(); }
    TorchFrames(const TorchFrames&) = delete;
    TorchFrames& operator=(const TorchFrames&) = delete;

    bool is_loss(StackId stack) const override;
    bool is_scaler(StackId stack) const override;
    bool is_loading(StackId stack) const override;
    bool in_function(StackId stack) const override;
    bool in_generated(StackId stack) const override;
    bool in_replay(StackId stack) const override;
    bool in_same_region(StackId one, StackId other) const override;
    bool in_package(StackId stack) const override;
    uint64_t place(StackId stack) const override;
    const StackSource* source() const override { return &stacks_; }
    AfterCheck after_check(StackId check, StackId next) const override;

    /// Where the loop of a DataLoader's worker process is: frames before it run inside the worker. size() when it is
    /// not there.
    static size_t worker_loop(const std::vector<SourceFrame>& stack);
    /// A tensor of another process is being put together.
    static bool arrives(const std::vector<SourceFrame>& stack);

  private:
    const StackSource& stacks_;
    /// Of the process that was started: what its children run was imported before they were forked.
    const std::time_t began_ = std::time(nullptr);
    /// Files that after_check() has read. A thread that asks takes them, so that nothing waits for a slow file system
    /// and a fork finds no lock; another one meanwhile reads files of its own.
    mutable std::atomic<PythonSources*> sources_{nullptr};
};

}  // namespace numsan
