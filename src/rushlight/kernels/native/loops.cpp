// Loops of NumPy's ufuncs over bfloat16 numbers, as NumPy calls them: addresses, how many, and their distances in bytes.
// Computed in float32 and rounded once, as those that they stand in for.
#include <cfenv>
#include <cmath>

#include "maps.h"

namespace rl {
namespace {

using Size = intptr_t;

inline Bf16 &at(char *base, Size offset) { return *reinterpret_cast<Bf16 *>(base + offset); }

// Whether what is written is an input itself, or apart from it: elements may be taken together then.
inline bool apart(const char *to, const char *from, Size bytes) { return to == from || to + bytes <= from || from + bytes <= to; }

template <class F> void pairs(char **args, const Size *count, const Size *step, F f) {
    char *x = args[0], *y = args[1], *o = args[2];
    const Size n = count[0], sx = step[0], sy = step[1], so = step[2];
    constexpr Size kSize = sizeof(Bf16);
    const auto *a = reinterpret_cast<const Bf16 *>(x), *b = reinterpret_cast<const Bf16 *>(y);
    auto *to = reinterpret_cast<Bf16 *>(o);
    if (so == kSize && sx == kSize && sy == kSize && apart(o, x, n * kSize) && apart(o, y, n * kSize)) {
        map2(a, b, to, n, f);
    } else if (so == kSize && sx == kSize && sy == 0 && apart(o, x, n * kSize) && apart(o, y, kSize)) {
        const float one = widened(*b);
        map1(a, to, n, [=](float v) { return f(v, one); });
    } else if (so == kSize && sx == 0 && sy == kSize && apart(o, y, n * kSize) && apart(o, x, kSize)) {
        const float one = widened(*a);
        map1(b, to, n, [=](float v) { return f(one, v); });
    } else {
        for (Size i = 0; i < n; ++i) at(o, i * so) = narrowed<Bf16>(f(widened(at(x, i * sx)), widened(at(y, i * sy))));
    }
}

template <class F> void singles(char **args, const Size *count, const Size *step, F f) {
    char *x = args[0], *o = args[1];
    const Size n = count[0];
    constexpr Size kSize = sizeof(Bf16);
    if (step[0] == kSize && step[1] == kSize && apart(o, x, n * kSize))
        map1(reinterpret_cast<const Bf16 *>(x), reinterpret_cast<Bf16 *>(o), n, f);
    else
        for (Size i = 0; i < n; ++i) at(o, i * step[1]) = narrowed<Bf16>(f(widened(at(x, i * step[0]))));
}

// By way of words as wide as what is compared: bytes straight from numbers are no SIMD code.
template <int Far, class F> void compare(const Bf16 *a, const Bf16 *b, uint8_t *o, long begin, long end, F f) {
    constexpr long kSome = 1024;
    int32_t found[kSome];
    for (long first = begin; first < end; first += kSome) {
        const long size = end - first < kSome ? end - first : kSome;
        const Bf16 *x = a + first, *y = b + Far * first;
#pragma omp simd
        for (long i = 0; i < size; ++i) found[i] = f(widened(x[i]), widened(y[Far * i])) ? 1 : 0;
#pragma omp simd
        for (long i = 0; i < size; ++i) o[first + i] = (uint8_t)found[i];
    }
}

template <class F> void truths(char **args, const Size *count, const Size *step, F f) {
    char *x = args[0], *y = args[1];
    auto *o = reinterpret_cast<uint8_t *>(args[2]);
    const Size n = count[0], sx = step[0], sy = step[1], so = step[2];
    constexpr Size kSize = sizeof(Bf16);
    if (so == 1 && sx == kSize && (sy == kSize || sy == 0) && apart(args[2], x, n * kSize) && apart(args[2], y, n * kSize)) {
        const auto *a = reinterpret_cast<const Bf16 *>(x), *b = reinterpret_cast<const Bf16 *>(y);
        if (sy) parallel_for(n, kGrain, [=](long begin, long end) { compare<1>(a, b, o, begin, end, f); });
        else parallel_for(n, kGrain, [=](long begin, long end) { compare<0>(a, b, o, begin, end, f); });
    } else {
        for (Size i = 0; i < n; ++i) o[i * so] = f(widened(at(x, i * sx)), widened(at(y, i * sy)));
    }
}

// A NaN wins, the first of two; in two steps, of which compilers make SIMD code.
RL_INLINE float larger(float x, float y) {
    const float most = x > y ? x : y;
    return x != x ? x : most;
}
RL_INLINE float smaller(float x, float y) {
    const float least = x < y ? x : y;
    return x != x ? x : least;
}

}  // namespace
}  // namespace rl

// Comparisons with NaN raise a flag, for which NumPy would warn: it looks at flags when a loop is through.
#define QUIET(NAME, KIND, EXPR)                                                                       \
    RL_EXPORT void rl_loop_##NAME(char **args, const intptr_t *count, const intptr_t *step, void *) { \
        rl::KIND(args, count, step, [](float x, float y) { return EXPR; });                           \
        std::feclearexcept(FE_INVALID);                                                               \
    }
#define LOOP(NAME, KIND, PARAMETERS, EXPR)                                                            \
    RL_EXPORT void rl_loop_##NAME(char **args, const intptr_t *count, const intptr_t *step, void *) { \
        rl::KIND(args, count, step, [] PARAMETERS { return EXPR; });                                  \
    }
LOOP(add, pairs, (float x, float y), x + y)
LOOP(subtract, pairs, (float x, float y), x - y)
LOOP(multiply, pairs, (float x, float y), x * y)
LOOP(true_divide, pairs, (float x, float y), x / y)
QUIET(maximum, pairs, rl::larger(x, y))
QUIET(minimum, pairs, rl::smaller(x, y))
LOOP(negative, singles, (float x), -x)
LOOP(absolute, singles, (float x), std::fabs(x))
LOOP(square, singles, (float x), x * x)
LOOP(sqrt, singles, (float x), std::sqrt(x))
LOOP(reciprocal, singles, (float x), 1 / x)
QUIET(greater, truths, x > y)
QUIET(greater_equal, truths, x >= y)
QUIET(less, truths, x < y)
QUIET(less_equal, truths, x <= y)
QUIET(equal, truths, x == y)
QUIET(not_equal, truths, x != y)
