// Births in another process: notes left for it, and found from it, by what a tensor looks like.
#pragma once

#include "host/base/scanner.h"
#include "host/birth/birth_exchange.h"
#include "host/birth/birth_store.h"
#include "host/track/op_context.h"

namespace numsan {

/// Not thread-safe: the verdict's lock protects it.
class ExchangedBirths {
  public:
    /// Both outlive this.
    ExchangedBirths(const Scanner& scanner, BirthStore& births) : scanner_(scanner), births_(births) {}

    /// For tensors that go to another process, or came from one. None unless set; outlives this.
    void set_exchange(BirthExchange* exchange) { exchange_ = exchange; }

    /// Leaves word of the births that the tensor's values go back to.
    void leave_notes(const BirthKinds& kinds, const TensorView& tensor) const;

    /// For an op that adopts a storage: the birth in another process that a value there goes back to; 0: none is known.
    BirthId received(Kind kind, const OpEvent& event, const OpContext& context);

  private:
    const Scanner& scanner_;
    BirthStore& births_;
    BirthExchange* exchange_ = nullptr;
};

}  // namespace numsan
