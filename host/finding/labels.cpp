#include "host/finding/labels.h"

namespace numsan {

const char* to_string(Severity severity) {
    switch (severity) {
        case Severity::Error: return "error";
        case Severity::Warning: return "warning";
        case Severity::Info: return "info";
    }
    return "error";
}

const char* to_string(Phase phase) {
    switch (phase) {
        case Phase::Forward: return "forward";
        case Phase::Backward: return "backward";
        case Phase::Optimizer: return "optimizer";
        case Phase::Data: return "data";
        case Phase::Comm: return "comm";
        case Phase::Load: return "load";
    }
    return "forward";
}

const char* to_string(FindingKind kind) {
    switch (kind) {
        case FindingKind::NaN: return "nan";
        case FindingKind::Inf: return "inf";
        case FindingKind::Overflow: return "overflow";
        case FindingKind::Underflow: return "underflow";
    }
    return "nan";
}

const char* to_string(EscapeInto into) {
    switch (into) {
        case EscapeInto::Loss: return "loss";
        case EscapeInto::Gradient: return "gradient";
        case EscapeInto::Parameter: return "parameter";
        case EscapeInto::OptimizerState: return "optimizer_state";
        case EscapeInto::Buffer: return "buffer";
        case EscapeInto::Collective: return "collective";
        case EscapeInto::Host: return "host";
        case EscapeInto::Output: return "output";
    }
    return "output";
}

const char* to_string(Fate fate) {
    switch (fate) {
        case Fate::Unread: return "unread";
        case Fate::ReadLast: return "read_last";
        case Fate::Joined: return "joined";
        case Fate::NoFloats: return "no_floats";
        case Fate::Finite: return "finite";
        case Fate::Masked: return "masked";
        case Fate::Overwritten: return "overwritten";
    }
    return "unread";
}

}  // namespace numsan
