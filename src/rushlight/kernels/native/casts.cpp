// Elements in another dtype, on all threads: NumPy converts on one, and some pairs number by number.
#include "common.h"

namespace rl {
namespace {

using Cast = void (*)(Call &call, const Array *x, Array *o);

template <class T, class U> void cast(Call &call, const Array *x_, Array *o_) {
    const long n = Call::product(x_);
    const T *x = call.pair_in<T>("input", x_, n);
    U *o = call.pair_out<U>("out", o_, n);
    call.run([=] {
        parallel_for(n, 4 * kGrain, [=](long begin, long end) {
#pragma omp simd
            for (long i = begin; i < end; ++i) o[i] = (U)x[i];
        });
    });
}

// From a dtype to another, by their letters in NumPy's typestrings and sizes; nullptr for pairs that are left to NumPy.
template <class T> Cast cast_to(char kind, long size) {
    if (kind == 'f') return size == 4 ? cast<T, float> : size == 8 ? cast<T, double> : (Cast) nullptr;
    if (kind == 'i') return size == 4 ? cast<T, int32_t> : size == 8 ? cast<T, int64_t> : (Cast) nullptr;
    return nullptr;
}

Cast cast_of(const Descr *from, const Descr *to) {
    const char kind = to->kind;
    const long size = to->itemsize;
    switch (from->kind) {
        case 'f': return from->itemsize == 4 ? cast_to<float>(kind, size) : from->itemsize == 8 ? cast_to<double>(kind, size) : nullptr;
        case 'i': return from->itemsize == 4 ? cast_to<int32_t>(kind, size) : from->itemsize == 8 ? cast_to<int64_t>(kind, size) : nullptr;
        case 'u':
        case 'b': return from->itemsize == 1 ? cast_to<uint8_t>(kind, size) : nullptr;
        default: return nullptr;
    }
}

// Whether elements lie without gaps, in one order, as the machine has them.
bool fit(const Array *x, const Array *o) {
    const bool own = x->descr->byteorder != kForeign && o->descr->byteorder != kForeign;
    return own && (x->flags & o->flags & (kC | kFortran)) && (x->flags & o->flags & kAligned);
}

}  // namespace
}  // namespace rl

// Of arrays of one size and order without gaps: 1; or 0, of which nothing was done, for other arrays and dtypes that are left to NumPy.
RL_EXPORT long rl_cast_bytes(Array *x, Array *o) {
    rl::Call call("cast");
    if (!call.is_array("input", x) || !call.is_array("out", o)) return call.run([] {}), 0;
    const rl::Cast cast = rl::fit(x, o) ? rl::cast_of(x->descr, o->descr) : nullptr;
    if (!cast) return 0;
    cast(call, x, o);
    return 1;
}
