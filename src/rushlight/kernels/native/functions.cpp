// Kernels as built-in functions of Python, which hands them the objects of a call as they lie: ctypes, which makes each argument an
// object of its own first, takes ten times as long as most small kernels do.
//
// There is one adapter for each signature, told by its letters (see signatures.py); the kernel's address is what the function is bound
// to.  A kernel whose letters are not in the list is called by ctypes as before.
#include <cstring>
#include <deque>
#include <string>
#include <tuple>
#include <utility>

#include "call.h"
#include "common.h"

namespace rl {
namespace {

using a = Array *;
using n = long;
using u = uint64_t;
using i = int;
using d = double;

// An argument as the kernel takes it; after one that cannot be taken so, Python's exception is set.
template <class T> struct Argument {
    static T read(void *object) { return static_cast<T>(interpreter.as_size(object, interpreter.overflow_error)); }
};
template <> struct Argument<a> {
    static a read(void *object) { return static_cast<a>(object); }
};
template <> struct Argument<u> {
    static u read(void *object) { return interpreter.as_unsigned(object); }
};
template <> struct Argument<d> {
    static d read(void *object) { return interpreter.as_double(object); }
};

void *refused(intptr_t wanted, intptr_t given) {
    const std::string text = "expected " + std::to_string(wanted) + " arguments of a native kernel, got " + std::to_string(given);
    interpreter.set_error(interpreter.type_error, text.c_str());
    return nullptr;
}

void *unknown(const char *letters) {
    interpreter.set_error(interpreter.type_error, ("no adapter for kernels of " + std::string(letters)).c_str());
    return nullptr;
}

template <class... K> struct Kinds {};

// Those that there are: tests/kernels/test_functions.py says which are wanting.
// clang-format off
using Signatures = Kinds<
    void(a, n), void(a, a), void(u, n), void(a, a, a), void(a, a, d), void(a, a, n), void(u, a, n), void(a, a, a, a), void(a, a, a, n),
    void(a, a, n, d), void(a, a, n, i), void(a, a, n, n), void(u, a, a, n), void(a, a, a, a, d), void(a, a, a, a, n),
    void(a, a, a, n, d), void(a, a, a, n, i), void(a, a, a, n, n), void(a, a, n, d, d), void(a, a, n, n, i),
    void(a, a, n, n, n), void(a, a, a, a, n, d), void(a, a, a, a, n, n), void(a, a, a, n, d, d), void(a, a, a, n, n, n),
    void(a, a, n, d, d, d), void(a, a, n, n, n, i), void(a, a, n, n, n, u), void(a, n, n, a, a, n), void(a, n, n, n, a, a),
    void(u, a, n, d, d, d), void(a, a, a, a, n, n, d), void(a, a, a, a, n, n, n), void(a, a, a, n, d, d, d),
    void(a, a, a, n, n, n, i), void(a, a, a, a, a, a, i, d), void(a, a, a, a, a, a, n, n), void(a, a, a, n, n, n, i, d),
    void(a, a, n, n, n, n, n, i), void(a, n, n, u, a, a, a, a), void(a, a, a, a, a, a, n, n, d),
    void(a, a, a, a, a), void(a, a, a, a, n, n, n, n, n), void(a, a, a, n, d, d, d, d, d), void(a, a, a, n, n, n, n, n, n),
    void(a, a, a, a, a, a, a, a, n, n), void(a, a, a, a, a, a, n, n, n, i), void(a, a, a, a, a, a, n, n, n, n),
    void(a, a, a, a, a, a, a, n, n, n, n, d), void(a, a, a, a, a, n, n, n, n, n),
    void(a, a, a, a, n, d, d, d, d, d), void(a, a, a, a, a, a, a, a, a, i, d), void(a, a, a, a, a, a, i, n, n, n, n),
    void(a, a, a, a, a, a, n, n, n, n, d), void(a, a, a, a, a, a, a, a, n, n, n, i), void(a, a, a, a, a, a, a, a, n, n, n, n),
    void(a, a, a, a, a, a, a, i, n, n, n, n), void(a, a, a, a, a, a, n, n, n, n, n, n),
    void(a, a, a, a, n, d, d, d, d, d, i, i), void(a, a, a, a, a, a, a, a, a, n, n, n, n),
    void(a, a, a, n, n, n, n, n, n, n, n, n, n), void(a, a, a, a, a, a, a, a, a, a, n, n, n, n),
    void(a, a, a, a, a, a, a, a, a, a, a, n, n, n, n), void(a, a, a, a, a, a, n, d, d, d, d, d, d, d, d),
    void(a, a, a, a, a, a, n, i, i, n, n, n, n, d, d), void(a, a, a, a, a, n, n, n, n, n, n, n, n, n, n),
    void(a, a, a, a, a, a, a, a, a, a, a, a, a, a, n, n, n, n, n), n(), n(a, a), n(a, i), n(a, a, a), n(a, a, n), n(a, a, i, i),
    n(a, n, d), n(a, n, u), n(a, a, a, a), n(a, a, n, n), n(a, n, d, d), n(a, n, n, a), n(a, n, n, u, a, a),
    n(a, a, a, n, n, n, n), n(a, a, a, n, n, n, n, n), n(a, a, a, a, a, n, n, n, n), n(a, a, a, i, i, n, n, n, n),
    n(a, n, n, n, u, a, a, a, a), n(a, a, a, a, a, a, n, n, n, n, d), n(a, a, a, a, i, i, i, n, n, n, n),
    n(a, a, a, a, a, a, n, n, n, n, n, d)>;
// clang-format on

// What Python calls: `self` holds the kernel's address.  nullptr where an exception is set.
template <class K> struct Adapter;
template <class R, class... A> struct Adapter<R(A...)> {
    using Kernel = R (*)(A...);

    template <size_t... I> static void *with(void *self, void *const *given, std::index_sequence<I...>) {
        const std::tuple<A...> all{Argument<A>::read(given[I])...};
        if (interpreter.occurred()) return nullptr;
        const auto kernel = reinterpret_cast<Kernel>(interpreter.pointer_of(self, nullptr));
        if constexpr (std::is_void<R>::value) {
            std::apply(kernel, all);
            if (interpreter.occurred()) return nullptr;
            interpreter.keep(const_cast<void *>(interpreter.none));
            return const_cast<void *>(interpreter.none);
        } else {
            const R found = std::apply(kernel, all);
            return interpreter.occurred() ? nullptr : interpreter.from_size(found);
        }
    }

    static void *call(void *self, void *const *given, intptr_t count) {
        if (count != sizeof...(A)) return refused(sizeof...(A), count);
        return with(self, given, std::index_sequence_for<A...>{});
    }
};

using Called = void *(*)(void *self, void *const *given, intptr_t count);

template <class T> constexpr char kLetter = std::is_pointer<T>::value   ? 'a'
                                            : std::is_same<T, n>::value ? 'n'
                                            : std::is_same<T, u>::value ? 'u'
                                            : std::is_same<T, i>::value ? 'i'
                                                                        : 'd';

// Whether kernels R(A...) have these letters.
template <class R, class... A> bool is(const char *letters, R (*)(A...)) {
    const char own[] = {kLetter<A>..., std::is_void<R>::value ? '\0' : '>', 'n', '\0'};
    return !std::strcmp(own, letters);
}

// The one for kernels of these letters, or nullptr.
template <class... K> Called adapter(const char *letters, Kinds<K...>) {
    Called found = nullptr;
    ((is(letters, static_cast<K *>(nullptr)) && (found = Adapter<K>::call)) || ...);
    return found;
}

struct Method {  // PyMethodDef
    const char *name;
    Called call;
    int flags;
    const char *doc;
};

constexpr int kFastCall = 0x80;  // METH_FASTCALL: self, the arguments, how many

}  // namespace
}  // namespace rl

// A new reference to a built-in function `name` that calls the kernel at `address`; TypeError where no adapter has these letters.
RL_EXPORT void *rl_function(const char *name, const char *letters, void *address) {
    static std::deque<std::string> names;
    static std::deque<rl::Method> methods;  // for good, as the library: functions refer to them
    const rl::Called call = rl::adapter(letters, rl::Signatures());
    if (!call) return rl::unknown(letters);
    names.emplace_back(name);
    methods.push_back({names.back().c_str(), call, rl::kFastCall, nullptr});
    void *self = rl::interpreter.new_capsule(address, nullptr, nullptr);
    if (!self) return nullptr;
    void *function = rl::interpreter.new_function(&methods.back(), self, nullptr);
    rl::interpreter.release(self);
    return function;
}
