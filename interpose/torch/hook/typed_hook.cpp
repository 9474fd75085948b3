#include "interpose/torch/hook/typed_hook.h"

#include <ATen/Operators.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "interpose/torch/describe/op_registry.h"
#include "interpose/torch/describe/tensor_view_of.h"
#include "interpose/torch/hook/hook_state.h"
#include "interpose/torch/hook/op_begin.h"
#include "interpose/torch/hook/op_call.h"
#include "interpose/torch/hook/record_hook.h"

// A torch that lacks an operator leaves its struct incomplete, and the operator out.
namespace at::_ops {
#define NUMSAN_TYPED(op) struct op;
#include "interpose/torch/hook/typed_hook.def"
#undef NUMSAN_TYPED
}  // namespace at::_ops

namespace numsan {
namespace {

template <class T>
using Plain = std::remove_cv_t<std::remove_reference_t<T>>;

template <class T>
inline constexpr bool is_tensor = std::is_same_v<Plain<T>, at::Tensor>;
template <class T>
inline constexpr bool is_optional_tensor = std::is_same_v<Plain<T>, std::optional<at::Tensor>>;
/// Arguments through which no tensor comes.
template <class T>
inline constexpr bool is_number =
    std::is_same_v<Plain<T>, at::Scalar> || std::is_arithmetic_v<Plain<T>> || std::is_enum_v<Plain<T>> ||
    std::is_same_v<Plain<T>, c10::SymInt> || std::is_same_v<Plain<T>, c10::IntArrayRef> ||
    std::is_same_v<Plain<T>, c10::SymIntArrayRef> || std::is_same_v<Plain<T>, std::array<bool, 2>> ||
    std::is_same_v<Plain<T>, std::array<bool, 3>> || std::is_same_v<Plain<T>, c10::Device> ||
    std::is_same_v<Plain<T>, c10::string_view> || std::is_same_v<Plain<T>, at::Generator>;
template <class T>
inline constexpr bool is_optional_number = false;
template <class T>
inline constexpr bool is_optional_number<std::optional<T>> = is_number<T> || std::is_same_v<T, at::OptionalIntArrayRef>;
template <>
inline constexpr bool is_optional_number<at::OptionalIntArrayRef> = true;
template <>
inline constexpr bool is_optional_number<at::OptionalSymIntArrayRef> = true;

template <class T>
inline constexpr bool is_plain = is_tensor<T> || is_optional_tensor<T> || is_number<T> || is_optional_number<Plain<T>>;

/// Arguments that say on which device the result is to be.
template <class T>
inline constexpr bool is_place =
    std::is_same_v<Plain<T>, c10::Device> || std::is_same_v<Plain<T>, std::optional<c10::Device>>;

/// As an IValue would hold it: enumerations are integers, truth values are no numbers.
template <class T>
void show_number(OpCall& call, const T& value) {
    if constexpr (std::is_same_v<T, at::Scalar> || std::is_floating_point_v<T>) {
        call.number(value);
    } else if constexpr ((std::is_integral_v<T> && !std::is_same_v<T, bool>) || std::is_enum_v<T>) {
        call.number(static_cast<int64_t>(value));
    } else if constexpr (std::is_same_v<T, c10::SymInt>) {
        if (const auto known = value.maybe_as_int()) call.number(*known);
    }
}

template <class T>
void show_argument(OpCall& call, const T& value, size_t& position, bool internal) {
    if constexpr (is_tensor<T>) {
        if (value.defined()) call.operand(value, position++, internal);
    } else if constexpr (is_optional_tensor<T>) {
        if (value.has_value() && value->defined()) call.operand(*value, position++, internal);
    } else if constexpr (is_number<T>) {
        show_number(call, value);
    } else {
        if (value.has_value()) show_number(call, *value);
    }
}

void show_result(OpCall& call, const at::Tensor& value, size_t position) {
    if (value.defined()) call.returned(value, position);
}

template <class... Parts, size_t... I>
void show_results(OpCall& call, const std::tuple<Parts...>& values, std::index_sequence<I...>) {
    (show_result(call, std::get<I>(values), I), ...);
}

template <class T>
inline constexpr size_t tensors_of = is_tensor<T> ? 1 : 0;
template <class... Parts>
inline constexpr size_t tensors_of<std::tuple<Parts...>> = (is_tensor<Parts> && ...) ? sizeof...(Parts) : 0;

/// The kernel of one operator on our key.
template <class Op, class Schema>
struct Typed;

template <class Op, class Return, class... Arguments>
struct Typed<Op, Return(Arguments...)> {
  public:
    static constexpr size_t kReturns = tensors_of<Plain<Return>>;
    static constexpr bool kPossible =
        (kReturns > 0 || is_number<Return>)&&(is_plain<Arguments> && ...) && sizeof...(Arguments) <= 64;
    static inline const Operator* op = nullptr;

    static Return call(c10::DispatchKeySet keys, Arguments... arguments) {
        const c10::DispatchKeySet below = behind_hook(keys);
        const CoreApi* core = core_api();
        if (core == nullptr) return Op::redispatch(below, std::forward<Arguments>(arguments)...);
        const bool for_subclass = is_for_subclass(keys);
        ThreadPlaces& places = ThreadPlaces::mine();
        if (may_touch_device(keys)) announce_writes(*core, arguments...);
        if (core->op_begin != nullptr) [[unlikely]]
            core->op_begin();
        Return result = [&]() -> Return {
            try {
                const HideInnerOps hide(places, !for_subclass);
                const SubclassCalls shown(for_subclass);
                return Op::redispatch(below, arguments...);  // not forwarded: a moved-from SymInt is 0
            } catch (const std::exception&) {
                if (!for_subclass) report_failure(*core, places, arguments...);
                throw;
            }
        }();
        try {
            report(*core, places, for_subclass, result, arguments...);
        } catch (const std::exception&) {
            core->fail("an operator could not be described");
        }
        return result;
    }

  private:
    static void announce_writes(const CoreApi& core, const Plain<Arguments>&... arguments) {
        if (op->written.empty() && op->info.op_class != OpClass::HostRead && !(is_place<Arguments> || ...)) return;
        OpBegin begin(core, op->info);
        size_t argument = 0;
        size_t written = 0;
        (show_begin(begin, arguments, argument++, written), ...);
        begin.done();
    }

    template <class T>
    static void show_begin(OpBegin& begin, const T& value, size_t argument, size_t& written) {
        const bool writes = written < op->written.size() && op->written[written] == argument;
        if (writes) ++written;
        if constexpr (is_tensor<T>) {
            if (value.defined()) begin.operand(value, writes);
        } else if constexpr (is_optional_tensor<T>) {
            if (value.has_value() && value->defined()) begin.operand(*value, writes);
        } else if constexpr (std::is_same_v<T, c10::Device>) {
            begin.device(value);
        } else if constexpr (std::is_same_v<T, std::optional<c10::Device>>) {
            if (value.has_value()) begin.device(*value);
        }
    }

    [[gnu::cold, gnu::noinline]] static void report_failure(const CoreApi& core, ThreadPlaces& places,
                                                            const Plain<Arguments>&... arguments) noexcept {
        try {
            TensorView inputs[sizeof...(Arguments)];
            OpCall call(*op, places);
            call.use(inputs, nullptr);
            size_t position = 0;
            (show_argument(call, arguments, position, false), ...);
            call.report_failure(core);
        } catch (const std::exception&) {
            core.fail("an operator could not be described");
        }
    }

    static void report(const CoreApi& core, ThreadPlaces& places, bool inner_ops_shown, const Plain<Return>& result,
                       const Plain<Arguments>&... arguments) {
        TensorView inputs[sizeof...(Arguments)];
        TensorView outputs[sizeof...(Arguments) + kReturns];
        OpCall call(*op, places);
        call.use(inputs, outputs);
        if (inner_ops_shown) call.show_inner_ops();
        size_t position = 0;
        uint64_t internal = op->internal_arguments;  // its lowest bit is the next argument's
        ((show_argument(call, arguments, position, (internal & 1) != 0), internal >>= 1), ...);
        if constexpr (is_tensor<Return>) {
            show_result(call, result, 0);
        } else if constexpr (kReturns > 0) {
            show_results(call, result, std::make_index_sequence<kReturns>());
        }
        if (uint64_t writes = op->written_arguments) {  // its lowest bit is the next argument's
            size_t written = 0;
            ((show_written(call, arguments, (writes & 1) != 0, written), writes >>= 1), ...);
        }
        call.report(core);
    }

    template <class T>
    static void show_written(OpCall& call, const T& value, bool writes, size_t& written) {
        if (!writes) return;
        if constexpr (is_tensor<T>) {
            if (value.defined()) call.written(value, written);
        } else if constexpr (is_optional_tensor<T>) {
            if (value.has_value() && value->defined()) call.written(*value, written);
        }
        ++written;
    }
};

template <class Op>
void register_typed(Registrations& made) {
    if constexpr (requires { sizeof(Op); }) {
        using Kernel = Typed<Op, typename Op::schema>;
        if constexpr (Kernel::kPossible) {
            const c10::OperatorName name(Op::name, Op::overload_name);
            const auto handle = c10::Dispatcher::singleton().findSchema(name);
            if (!handle.has_value()) return;
            Kernel::op = &operator_of(*handle);
            const OpClass op_class = Kernel::op->info.op_class;
            if (op_class == OpClass::Composite || op_class == OpClass::View) return;
            // Its type is the operator's own, which the dispatcher compares with other kernels'.
            made.kernel(name, c10::KernelFunction::makeFromUnboxedFunction(TORCH_FN(Kernel::call)),
                        c10::impl::CppSignature::make<decltype(Kernel::call)>());
        }
    }
}

}  // namespace

void register_typed_hooks(Registrations& made) {
#define NUMSAN_TYPED(op) register_typed<at::_ops::op>(made);
#include "interpose/torch/hook/typed_hook.def"
#undef NUMSAN_TYPED
}

}  // namespace numsan
