// A child that is forked while the locks of something are held, as they are over every fork of a program.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace numsan {

/// Whether `works` is true in the child. Where other threads run they may not be inside the allocator: that of the
/// sanitizers has no locks held over a fork.
template <class Locked, class Works>
bool works_in_child(Locked& locked, Works works) {
    locked.lock();
    const pid_t child = fork();
    locked.unlock();
    if (child == 0) _exit(works() ? 0 : 1);
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace numsan
