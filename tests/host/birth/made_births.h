// What makes births, with nothing known of anything yet.
#pragma once

#include <gtest/gtest.h>

#include "host/birth/births.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {

class MadeBirths : public testing::Test {
  protected:
    MadeBirths() { context.stack = 1; }

    const Birth& born(Kind kind, const MadeUpOp& op, const ForwardRecord& forward = {}) {
        return *store.find(births.origin(kind, op.event(), context, {}, {}, forward).id);
    }

    CpuScanner scanner;
    MadeUpStacks stacks;
    LossHistory losses;
    Lineage lineage;
    ParameterHistory parameters;
    BirthStore store;
    StepPhase phase{stacks, lineage};
    BirthFacts facts{scanner, losses, lineage, parameters};
    ExchangedBirths exchanged{scanner, store};
    Births births{scanner, stacks, store, phase, facts, exchanged};
    OpContext context;
    MadeUp x{-1}, out{kNan};
    MadeUp weight = MadeUp({2}, kParameter);
};

}  // namespace numsan
