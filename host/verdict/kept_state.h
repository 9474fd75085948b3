// What the program keeps over its steps, buffers, moments, averages: which of it is bad is known once it has a name.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "host/base/ids.h"
#include "host/birth/birth_store.h"
#include "host/track/ledger.h"
#include "host/track/op_context.h"
#include "host/verdict/escapes.h"

namespace numsan {

/// A bad value was written in place into a tensor that is neither parameter nor gradient.
struct StateWrite {
    BirthId birth = 0;
    const void* impl = nullptr;
    const void* storage = nullptr;  ///< must still hold it when the name is looked up: addresses are used again
    int64_t step = 0;
    OpSeq seq{};
    StackId stack = 0;
};

/// A tensor that the program keeps: a buffer, a moment, an averaged parameter.
struct KeptTensor {
    const void* impl = nullptr;
    const void* storage = nullptr;  ///< where its values lie; a device's goes by the name that events give it
    EscapeInto kind = EscapeInto::Buffer;
};

/// Not thread-safe: the verdict's lock protects it.
class KeptState {
  public:
    /// All outlive this.
    KeptState(const Ledger& ledger, BirthStore& births, Escapes& escapes)
        : ledger_(ledger), births_(births), escapes_(escapes) {}

    /// State of the program may hold it now; its name, asked for later, shows which.
    void note_write(const BirthKinds& kinds, const TensorView& tensor, const OpContext& context);
    /// Takes those writes whose values still lie there.
    std::vector<StateWrite> take_writes();
    /// It was one into what the program keeps.
    void confirm(const StateWrite& write, EscapeInto into, Outcome& outcome);
    void add_births(std::set<BirthId>& births) const;

    /// An optimizer has ended a step. True: what the program keeps should be looked up now for find_contaminated(), as
    /// a finding was made in this step or the one before.
    bool end_step();
    /// Which of them births that escaped have reached. One that shares its storage with another is passed over: the
    /// ledger does not know which of them is bad.
    void find_contaminated(const std::vector<KeptTensor>& kept, Outcome& outcome);

    /// In a forked child: what the parent has to report is the parent's.
    void forget() { writes_.clear(); }

  private:
    const Ledger& ledger_;
    BirthStore& births_;
    Escapes& escapes_;
    std::vector<StateWrite> writes_;
    int64_t looked_for_ = 0;  ///< findings for which looking was begun
    int steps_to_look_ = 0;   ///< ends of optimizer steps at which what the program keeps is still to be looked up
};

}  // namespace numsan
