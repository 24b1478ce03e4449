// Loops of NumPy's ufuncs over bfloat16 and float16 numbers that call NumPy's own over float32, some numbers at a time: what these make,
// rounded once.
#include <cmath>

#include "flags.h"
#include "loops.h"

namespace rl {
namespace {

constexpr long kAsked = 1024;  // numbers that NumPy's loop is called for at once: what it reads and writes stays in the first cache

// `n` numbers of an operand in float32; one where it has a step of 0.
template <class S> inline void read(const char *x, Size step, long n, float *o) {
    if (step == (Size)sizeof(S)) return widen(reinterpret_cast<const S *>(x), o, n);
    for (long i = 0; i < (step ? n : 1); ++i) o[i] = widened(at<S>(const_cast<char *>(x), i * step));
}

template <class S> inline void write(const float *x, char *o, Size step, long n) {
    if (step == (Size)sizeof(S)) return narrow(x, reinterpret_cast<S *>(o), n);
    for (long i = 0; i < n; ++i) at<S>(o, i * step) = narrowed<S>(x[i]);
}

// Whether no number that is yet to be read is written before.
inline bool in_any_order(const char *x, Size step, const char *o, Size to, Size n) {
    if (x == o && step == to) return true;
    const char *first = x + (step < 0 ? (n - 1) * step : 0), *last = x + (step > 0 ? (n - 1) * step : 0) + 2;
    const char *begin = o + (to < 0 ? (n - 1) * to : 0), *end = o + (to > 0 ? (n - 1) * to : 0) + 2;
    return last <= begin || end <= first;
}

// All of a row and what is there become one number, in float32 until the end.
template <class S> void to_one(char **args, Size n, Size step, const Former &wide) {
    float row[kAsked], one = widened(at<S>(args[0], 0));
    const Size by[3] = {0, step ? (Size)sizeof(float) : 0, 0};
    for (Size first = 0; first < n; first += kAsked) {
        const Size some = n - first < kAsked ? n - first : kAsked;
        read<S>(args[1] + first * step, step, some, row);
        char *given[3] = {reinterpret_cast<char *>(&one), reinterpret_cast<char *>(row), reinterpret_cast<char *>(&one)};
        wide(given, &some, by);
    }
    at<S>(args[0], 0) = narrowed<S>(one);
}

// Some numbers at a time, up to `most`. kIn: how many operands there are.
template <class S, int kIn> void some_at_a_time(char **args, Size n, const Size *step, Size most, const Former &wide) {
    const Size to = step[kIn];
    Size by[kIn + 1];
    char *given[kIn + 1];
    alignas(64) float in[kIn][kAsked];
    alignas(64) float out[kAsked];
    for (int k = 0; k < kIn; ++k) {
        by[k] = step[k] ? (Size)sizeof(float) : 0;
        given[k] = reinterpret_cast<char *>(in[k]);
    }
    by[kIn] = sizeof(float);
    given[kIn] = reinterpret_cast<char *>(out);
    for (Size first = 0; first < n; first += most) {
        const Size some = n - first < most ? n - first : most;
        for (int k = 0; k < kIn; ++k) read<S>(args[k] + first * step[k], step[k], some, in[k]);
        wide(given, &some, by);
        write<S>(out, args[kIn] + first * to, to, some);
    }
}

template <class S, int kIn> void borrowed(char **args, const Size *count, const Size *step, const Former &wide) {
    const Size n = count[0], to = step[kIn];
    if (kIn == 2 && args[0] == args[kIn] && !step[0] && !to) return to_one<S>(args, n, step[1], wide);
    bool free = to != 0;
    for (int k = 0; k < kIn; ++k) free = free && in_any_order(args[k], step[k], args[kIn], to, n);
    if (!free || n < 2 * kGrain || threads() == 1) return some_at_a_time<S, kIn>(args, n, step, free ? kAsked : 1, wide);
    parallel_with_flags(n, kGrain, [=, &wide](long begin, long end) {
        char *part[kIn + 1];
        for (int k = 0; k <= kIn; ++k) part[k] = args[k] + begin * step[k];
        some_at_a_time<S, kIn>(part, end - begin, step, kAsked, wide);
    });
}

}  // namespace
}  // namespace rl

// `rl_wide_NAME` is NumPy's loop over float32, which Python enters.
#define BORROWED(NAME, IN)                                                                                    \
    extern "C" {                                                                                              \
    __attribute__((visibility("default"))) rl::Former rl_wide_##NAME = {nullptr, nullptr};                    \
    }                                                                                                         \
    RL_EXPORT void rl_loop_##NAME##_bf16(char **args, const intptr_t *n, const intptr_t *step, void *) {      \
        rl::borrowed<rl::Bf16, IN>(args, n, step, rl_wide_##NAME);                                            \
    }                                                                                                         \
    RL_EXPORT void rl_loop_##NAME##_f16(char **args, const intptr_t *n, const intptr_t *step, void *) {       \
        rl::borrowed<rl::F16, IN>(args, n, step, rl_wide_##NAME);                                             \
    }
#define SINGLE(NAME) BORROWED(NAME, 1)
#define PAIR(NAME) BORROWED(NAME, 2)
SINGLE(sin)
SINGLE(cos)
SINGLE(tan)
SINGLE(arcsin)
SINGLE(arccos)
SINGLE(arctan)
SINGLE(sinh)
SINGLE(cosh)
SINGLE(tanh)
SINGLE(arcsinh)
SINGLE(arccosh)
SINGLE(arctanh)
SINGLE(exp)
SINGLE(exp2)
SINGLE(expm1)
SINGLE(log)
SINGLE(log2)
SINGLE(log10)
SINGLE(log1p)
SINGLE(cbrt)
SINGLE(deg2rad)
SINGLE(rad2deg)
PAIR(power)
PAIR(arctan2)
PAIR(hypot)
PAIR(logaddexp)
PAIR(logaddexp2)
PAIR(fmax)
PAIR(fmin)
PAIR(fmod)
PAIR(remainder)
PAIR(floor_divide)
