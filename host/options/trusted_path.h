// Whether a path leads to something that only this user and root can have written.
#pragma once

#include <string>

namespace numsan {

enum class Trust {
    Yes,
    Unusable,  ///< missing, not a folder, not to be made or read
    Unsafe     ///< another user can write there, or can put something else in its place
};

struct TrustedPath {
    Trust trust = Trust::Unusable;
    std::string resolved;  ///< absolute and without links; of Trust::Yes
    std::string why;       ///< one line that begins with the path at fault; empty for Trust::Yes
    std::string cure;      ///< what to do about it; of Trust::Unsafe
};

enum class Missing {
    Make,   ///< make the folder and those above it, for this user only (0700)
    Accept  ///< nothing is made: a folder that could be made counts as usable
};

/// A folder that code may be loaded from. It belongs to this user or to root and no other user can write it; no other
/// user can exchange a folder or a link on the way to it. A sticky folder such as /tmp may be on the way, and one that
/// is writable by a group with the number of this user, which is taken for the user's own. [MT]
TrustedPath trusted_folder(const std::string& path, Missing missing);

/// A regular file that code may be loaded from, in a trusted folder. A link is none. [MT]
TrustedPath trusted_file(const std::string& path);

}  // namespace numsan
