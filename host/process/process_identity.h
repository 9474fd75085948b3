// What distinguishes a process from every other one, also of another container or machine.
#pragma once

#include <cstdint>
#include <string>

#include "host/finding/run_summary.h"
#include "host/report/report_owner.h"

namespace numsan {

/// "BOOT/NAMESPACE/START": the kernel's boot id, the pid namespace's inode, the ticks between boot and the start of the
/// process. Numbers of processes and names of hosts repeat: a container begins at 1, and is rebuilt with its name.
/// Empty where /proc does not show it, or shows another namespace.
std::string process_identity();

/// Whether the process that called itself `identity`, with number `pid`, has surely ended. False where that is not
/// known: for an empty identity, for another boot, machine or namespace.
bool has_ended(int64_t pid, const std::string& identity);

/// Whether a report is that of the process of the run `mine`.
bool is_own(const ReportOwner& owner, const RunSummary& mine);

/// A report of a process that has ended: processes that share a path must not write over what others found.
bool is_left_over(const std::string& path, const RunSummary& mine);

}  // namespace numsan
