// A library that holds the dispatch key which numsan would use, as torchdistx does: its fallback does nothing.
#include <torch/library.h>

TORCH_LIBRARY_IMPL(_, Fake, library) { library.fallback(torch::CppFunction::makeFallthrough()); }
