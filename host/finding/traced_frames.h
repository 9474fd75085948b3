// Puts the program's own frames into stacks of code that torch.fx wrote.
#pragma once

#include <vector>

#include "host/finding/place_of.h"
#include "host/stacks/stack_source.h"

namespace numsan {

/// A frame of generated code gets those in front of it that its line was made from. The compiled function's own frame,
/// which stands on the line of its `def`, goes: it is the outermost of them. So do numsan's own, where it ran
/// the graph.
std::vector<SourceFrame> with_traced_frames(std::vector<SourceFrame> stack, const LiveNames::Traced& traced,
                                            const PlaceFinder& places);

}  // namespace numsan
