// The fields of what a recording holds, in the order in which they are written and read.
#pragma once

#include "host/record/bytes.h"
#include "host/record/segment.h"

namespace numsan {

inline constexpr uint64_t kLastOpClass = static_cast<uint64_t>(OpClass::Region);
inline constexpr uint64_t kLastIntegerOp = static_cast<uint64_t>(IntegerOp::Gather);
inline constexpr uint64_t kLastIntegerType = sizeof kIntegerTypes / sizeof kIntegerTypes[0] - 1;

template <class Bytes, class... T>
void all(Bytes& b, T&... values) {
    (transfer(b, values), ...);
}

template <class Bytes>
void fields(Bytes& b, RecordedView& v) {
    TensorView& t = v.view;
    all(b, t.data, t.storage, t.storage_data, t.impl, t.storage_bytes, t.numel, t.flags, t.device_index, t.argument);
    transfer_choice(b, t.dtype, kDTypeCount - 1);
    transfer_choice(b, t.device, static_cast<uint64_t>(Device::Other));
    transfer_choice(b, t.integer, kLastIntegerType);
    all(b, v.dims);
    if constexpr (Bytes::kReads) {
        constexpr size_t kMostDims = 1 << 10;
        if (v.dims.size() % 2 != 0 || v.dims.size() > 2 * kMostDims) throw RecordError("sizes without strides");
        t.ndim = static_cast<int16_t>(v.dims.size() / 2);
        v.point();
        // Elements are found by their sizes.
        int64_t elements = 1;
        for (int16_t d = 0; d < t.ndim; ++d) {
            if (t.sizes[d] < 0 || __builtin_mul_overflow(elements, t.sizes[d], &elements))
                throw RecordError("a tensor has impossible sizes");
        }
        if (elements != t.numel || t.storage_bytes < 0) throw RecordError("a tensor's sizes do not agree");
    }
}

template <class Bytes>
void fields(Bytes& b, Range& r) {
    all(b, r.max_magnitude, r.min_nonzero_magnitude, r.suspicious);
}

template <class Bytes>
void fields(Bytes& b, Health& h) {
    all(b, h.elements, h.nan, h.pos_inf, h.neg_inf, h.subnormal, h.zero, h.absmax, h.absmin, h.min, h.max, h.finite,
        h.first_bad, h.first_bad_bits);
    transfer_choice(b, h.first_bad_kind, kNegInf);
}

template <class Bytes>
void fields(Bytes& b, TensorAnswer& a) {
    all(b, a.place);
    if (a.place == 0) all(b, a.tensor);
    all(b, a.range, a.kinds, a.health);
}

template <class Bytes>
void fields(Bytes& b, CoverageAnswer& a) {
    all(b, a.launches, a.kernels, a.blind_spots);
}

template <class Bytes, size_t N>
void transfer_text(Bytes& b, char (&text)[N]) {
    if constexpr (Bytes::kReads) {
        const std::string read = b.text();
        if (read.size() >= N) throw RecordError("a text is too long");
        std::memcpy(text, read.c_str(), read.size() + 1);
    } else {
        b.text(std::string_view(text, strnlen(text, N)));
    }
}

/// By its id: a later version may have more of them.
template <class Bytes>
void transfer_mechanism(Bytes& b, Mechanism& mechanism) {
    if constexpr (Bytes::kReads) {
        const std::string id = b.text();
        mechanism = Mechanism::None;
        for (const MechanismInfo& row : kMechanisms) {
            if (id == row.id) mechanism = row.value;
        }
        if (!id.empty() && mechanism == Mechanism::None) throw RecordError("a mechanism that does not exist");
    } else {
        b.text(to_string(mechanism));
    }
}

template <class Bytes>
void fields(Bytes& b, BirthNote& h) {
    all(b, h.numel, h.nan, h.pos_inf, h.neg_inf, h.first_bad);
    transfer_choice(b, h.dtype, kDTypeCount - 1);
    transfer_choice(b, h.kind, kNegInf);
    all(b, h.intended, h.ignored, h.inherited, h.pid, h.line, h.birth, h.seq);
    transfer_text(b, h.op);
    transfer_mechanism(b, h.mechanism);
    transfer_text(b, h.function);
    transfer_text(b, h.file);
}

/// Elements lie beside each other.
template <class Bytes>
void transfer_elements(Bytes& b, std::map<uint64_t, std::string>& elements) {
    uint64_t before = 0;
    if constexpr (Bytes::kReads) {
        elements.clear();
        for (size_t left = b.count(); left > 0; --left) {
            before += static_cast<uint64_t>(b.signed_number());
            elements[before] = b.text();
        }
    } else {
        b.number(elements.size());
        for (const auto& [address, bytes] : elements) {
            b.signed_number(static_cast<int64_t>(address - before));
            b.text(bytes);
            before = address;
        }
    }
}

template <class Bytes>
void fields(Bytes& b, Answers& a) {
    all(b, a.tensors);
    transfer_elements(b, a.elements);
    all(b, a.notes, a.generated, a.coverage, a.no_device);
}

template <class Bytes>
void fields(Bytes& b, RecordedGroup& g) {
    all(b, g.name, g.description, g.rank, g.size, g.ranks);
    if constexpr (Bytes::kReads) {
        const bool known = !g.ranks.empty();
        if (g.size < 1 || g.rank < 0 || g.rank >= g.size || (known && g.ranks.size() != static_cast<size_t>(g.size)))
            throw RecordError("a group of ranks does not agree with its size");
    }
}

template <class Bytes>
void fields(Bytes& b, CallFacts& f) {
    all(b, f.thread, f.sequence, f.graph_task, f.grad_enabled, f.infinite_scalar, f.inner_ops_shown, f.on_device,
        f.asks_autograd_facts, f.queue_known, f.queue_device, f.queue_stream, f.scalars, f.group);
}

template <class Bytes>
void fields(Bytes& b, SourceFrame& f) {
    all(b, f.file, f.function, f.line, f.self, f.native, f.traced);
}

template <class Bytes>
void fields(Bytes& b, KeptSource& s) {
    all(b, s.text, s.cell);
}

template <class Bytes>
void fields(Bytes& b, LiveNames::TensorName& n) {
    all(b, n.name);
    transfer_choice(b, n.role, static_cast<uint64_t>(LiveNames::TensorName::Role::OptimizerState));
    all(b, n.storage, n.leaf, n.optimized);
}

template <class Bytes>
void fields(Bytes& b, LiveNames::GeneratedKernel& k) {
    all(b, k.name, k.file, k.line, k.backward);
}

template <class Bytes>
void fields(Bytes& b, LiveNames& n) {
    all(b, n.modules, n.tensors, n.kernels, n.traced, n.sources);
}

template <class Bytes>
void fields(Bytes& b, ProcessRank& r) {
    all(b, r.rank, r.world_size);
}

/// What the head says that follows: before the answers.
template <class Bytes>
void fields_of_head(Bytes& b, Segment& s) {
    switch (s.head) {
        case Head::OpEnd:
        case Head::OpFailed: all(b, s.stack, s.op, s.facts, s.inputs, s.outputs); break;
        case Head::NodeBegin: all(b, s.stack, s.text, s.facts, s.inputs, s.outputs); break;
        case Head::ScopeBegin: all(b, s.stack, s.text); break;
        case Head::Use:
        case Head::ScopeEnd:
        case Head::Skipped:
        case Head::Fail: all(b, s.text); break;
        case Head::BeforeWrite: all(b, s.storage); break;
        case Head::Range:
            transfer_choice(b, s.range, static_cast<uint64_t>(RangeEvent::Kind::Stop));
            all(b, s.range_key, s.text, s.range_ignored);
            break;
        case Head::DecidePending:
        case Head::Finish: all(b, s.status); break;
        case Head::Names: all(b, s.names); break;
        case Head::AutogradFacts: all(b, s.autograd_facts); break;
        case Head::Pin: all(b, s.pinned, s.data, s.bytes); break;
        case Head::Rank: all(b, s.rank); break;
        case Head::None: throw RecordError("a segment without a beginning");
        default: break;
    }
}

template <class Bytes>
void fields(Bytes& b, Segment& s) {
    all(b, s.thread);
    transfer_choice(b, s.head, kLastHead);
    fields_of_head(b, s);
    all(b, s.answers);
    transfer_choice(b, s.leaves_by, kLastHead);
    if constexpr (Bytes::kReads) {
        const size_t inputs = s.inputs.size();
        for (TensorAnswer& answer : s.answers.tensors) {
            if (answer.place == 0) continue;
            const size_t place = answer.place - 1;
            if (place >= inputs + s.outputs.size()) throw RecordError("an answer about no operand");
            answer.tensor = place < inputs ? s.inputs[place] : s.outputs[place - inputs];
        }
    }
}

template <class Bytes>
void fields(Bytes& b, LaunchFacts& l) {
    all(b, l.rank, l.world_size, l.local_rank, l.launcher, l.job);
}

template <class Bytes>
void fields(Bytes& b, RunSummary& r) {
    all(b, r.version, r.commit, r.run_id, r.argv, r.cwd, r.pid, r.process, r.host, r.launch, r.started, r.options,
        r.tier);
}

template <class Bytes>
void fields(Bytes& b, RunFacts& f) {
    all(b, f.run, f.options, f.torch_version, f.torch_root, f.python_version, f.blind_spots, f.allow_list,
        f.inductor_cache, f.standard_library);
}

template <class Bytes>
void fields(Bytes& b, RecordedOp& o) {
    all(b, o.name, o.overload);
    transfer_choice(b, o.op_class, kLastOpClass);
    all(b, o.mutates, o.id);
    transfer_choice(b, o.integer_op, kLastIntegerOp);
}

template <class Bytes>
void fields(Bytes& b, RecordedStack& s) {
    all(b, s.id, s.in_module, s.frames);
}

template <class Bytes>
void fields(Bytes& b, RunEnd& e) {
    all(b, e.status, e.report);
}

}  // namespace numsan
