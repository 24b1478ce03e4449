// Loops of NumPy's ufuncs over bfloat16 and float16 numbers, as NumPy calls them: addresses, how many, and their distances in bytes.
// Computed in float32 and rounded once, as those that they stand in for.
#include <atomic>
#include <cfenv>
#include <cmath>
#include <cstring>

#include "loops.h"
#include "maps.h"

namespace rl {
namespace {

// Whether what is written is an input itself, or apart from it: elements may be taken together then.
inline bool apart(const char *to, const char *from, Size bytes) { return to == from || to + bytes <= from || from + bytes <= to; }

// f of arrays without gaps, or of one and a number; false of all others, of which nothing is done.
template <class S, class F> bool pairs_together(char **args, Size n, const Size *step, F f) {
    char *x = args[0], *y = args[1], *o = args[2];
    const Size sx = step[0], sy = step[1];
    constexpr Size kSize = sizeof(S);
    const auto *a = reinterpret_cast<const S *>(x), *b = reinterpret_cast<const S *>(y);
    auto *to = reinterpret_cast<S *>(o);
    if (step[2] != kSize || !apart(o, x, sx ? n * kSize : kSize) || !apart(o, y, sy ? n * kSize : kSize)) return false;
    if (sx == kSize && sy == kSize) {
        map2(a, b, to, n, f);
    } else if (sx == kSize && sy == 0) {
        const auto one = widened(*b);
        map1(a, to, n, [=](auto v) -> decltype(f(v, v)) { return f(v, like(v, one)); });
    } else if (sx == 0 && sy == kSize) {
        const auto one = widened(*a);
        map1(b, to, n, [=](auto v) -> decltype(f(v, v)) { return f(like(v, one), v); });
    } else {
        return false;
    }
    return true;
}

template <class S, class F> void pairs(char **args, const Size *count, const Size *step, F f) {
    const Size n = count[0];
    if (pairs_together<S>(args, n, step, f)) return;
    for (Size i = 0; i < n; ++i)
        at<S>(args[2], i * step[2]) = narrowed<S>(f(widened(at<S>(args[0], i * step[0])), widened(at<S>(args[1], i * step[1]))));
}

// The greatest or the least of a row without gaps and of what is there: in any order the same.
template <class S, class F> bool greatest(char **args, Size n, const Size *step, F f) {
    if (args[0] != args[2] || step[0] || step[2] || step[1] != (Size)sizeof(S) || n < kAtOnce) return false;
    const auto *x = reinterpret_cast<const S *>(args[1]);
    constexpr long kLanes = 64;
    float lane[kLanes];
    for (long k = 0; k < kLanes; ++k) lane[k] = widened(at<S>(args[0], 0));
    pieces<kAtOnce>(x, n, [&](long, const float *v, long some) {
        long i = 0;
        for (; i + kLanes <= some; i += kLanes)
#pragma omp simd
            for (long k = 0; k < kLanes; ++k) lane[k] = f(lane[k], v[i + k]);
#pragma omp simd
        for (long k = 0; k < some - i; ++k) lane[k] = f(lane[k], v[i + k]);
    });
    for (long width = kLanes / 2; width > 0; width /= 2)
#pragma omp simd
        for (long k = 0; k < width; ++k) lane[k] = f(lane[k], lane[k + width]);
    at<S>(args[2], 0) = narrowed<S>(lane[0]);
    return true;
}

template <class S, class F> void extremes(char **args, const Size *count, const Size *step, F f) {
    if (!greatest<S>(args, count[0], step, f)) pairs<S>(args, count, step, f);
}

template <class S, class F> void singles(char **args, const Size *count, const Size *step, F f) {
    char *x = args[0], *o = args[1];
    const Size n = count[0];
    constexpr Size kSize = sizeof(S);
    if (step[0] == kSize && step[1] == kSize && apart(o, x, n * kSize))
        map1(reinterpret_cast<const S *>(x), reinterpret_cast<S *>(o), n, f);
    else
        for (Size i = 0; i < n; ++i) at<S>(o, i * step[1]) = narrowed<S>(f(widened(at<S>(x, i * step[0]))));
}

// By way of words as wide as what is compared: bytes straight from numbers are no SIMD code.
template <class S, class F> void truths_of_part(const S *a, const S *b, float one, uint8_t *o, long n, F f) {
    Part<S, kAtOnce> left, right;
    int32_t found[kAtOnce];
    for (long first = 0; first < n; first += kAtOnce) {
        const long size = n - first < kAtOnce ? n - first : kAtOnce;
        const float *x = left(a + first, size);
        if (b) {
            const float *y = right(b + first, size);
#pragma omp simd
            for (long i = 0; i < size; ++i) found[i] = f(x[i], y[i]) ? 1 : 0;
        } else {
#pragma omp simd
            for (long i = 0; i < size; ++i) found[i] = f(x[i], one) ? 1 : 0;
        }
#pragma omp simd
        for (long i = 0; i < size; ++i) o[first + i] = (uint8_t)found[i];
    }
}

// b: as many numbers as of `a`, or nullptr, for which `one` stands.
template <class S, class F> void truths_together(const S *a, const S *b, float one, uint8_t *o, long n, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
        truths_of_part(a + begin, b ? b + begin : nullptr, one, o + begin, end - begin, f);
    });
}

template <class S, class F> void truths(char **args, const Size *count, const Size *step, F f) {
    const Size n = count[0], sx = step[0], sy = step[1], so = step[2];
    auto *o = reinterpret_cast<uint8_t *>(args[2]);
    constexpr Size kSize = sizeof(S);
    const auto *a = reinterpret_cast<const S *>(args[0]), *b = reinterpret_cast<const S *>(args[1]);
    const bool far = so == 1 && apart(args[2], args[0], n * kSize) && apart(args[2], args[1], n * kSize);
    if (far && sx == kSize && (sy == kSize || sy == 0))
        truths_together(a, sy ? b : nullptr, widened(*b), o, n, f);
    else
        for (Size i = 0; i < n; ++i) o[i * so] = f(widened(at<S>(args[0], i * sx)), widened(at<S>(args[1], i * sy)));
}

constexpr uint16_t kSize = 0x7fff;  // all bits but the sign
template <class S> constexpr uint16_t kInfinite = std::is_same<S, Bf16>::value ? 0x7f80 : 0x7c00;

// f of the bits of each number.
template <class S, class F> void kinds(char **args, const Size *count, const Size *step, F f) {
    const Size n = count[0], sx = step[0], so = step[1];
    auto *o = reinterpret_cast<uint8_t *>(args[1]);
    if (so != 1 || sx != (Size)sizeof(S) || !apart(args[1], args[0], n * sx)) {
        for (Size i = 0; i < n; ++i) o[i * so] = f(at<S>(args[0], i * sx).bits);
        return;
    }
    const auto *x = reinterpret_cast<const uint16_t *>(args[0]);
    parallel_for(n, 2 * kGrain, [=](long begin, long end) {
        const uint16_t *from = x;  // bytes written may be anything, what is captured, too
        uint8_t *to = o;
#pragma omp simd
        for (long i = begin; i < end; ++i) to[i] = f(from[i]) ? 1 : 0;
    });
}

inline uint16_t word_at(const char *from) {
    uint16_t found;
    std::memcpy(&found, from, sizeof found);
    return found;
}

// Elements of two bytes as NumPy has a dtype copy its own, in the order of their bytes or in the other; without `from` those that are
// there.  They may begin at odd addresses.
inline void copied(char *to, Size by, const char *from, Size step, Size n, bool swap) {
    constexpr Size kBytes = sizeof(uint16_t);
    if (!from) from = to, step = by;
    if (!swap && by == kBytes && step == kBytes) return void(std::memmove(to, from, n * kBytes));
    if (!swap && by == kBytes && step == 0) {
        const uint16_t one = word_at(from);
        for (Size i = 0; i < n; ++i) std::memcpy(to + i * kBytes, &one, kBytes);
        return;
    }
    for (Size i = 0; i < n; ++i) {
        const uint16_t found = word_at(from + i * step), bits = swap ? (uint16_t)(found << 8 | found >> 8) : found;
        std::memcpy(to + i * by, &bits, kBytes);
    }
}

// A NaN wins, the first of two; in two steps, of which compilers make SIMD code.
// Of zeros of both signs the second of bfloat16, as of float32, and the first of float16, as NumPy has it.
template <class S, class V> RL_INLINE V larger(V x, V y) {
    const V most = (std::is_same<S, Bf16>::value ? x > y : x >= y) ? x : y;
    return x != x ? x : most;
}
template <class S, class V> RL_INLINE V smaller(V x, V y) {
    const V least = (std::is_same<S, Bf16>::value ? x < y : x <= y) ? x : y;
    return x != x ? x : least;
}

// The next number after x in the direction of y: those of one sign are in the order of their bits.
// NaN where either is; of zeros of both signs bfloat16 gives the second, and float16 the first, as NumPy has it.
template <class S> RL_INLINE int next(int x, int y) {
    constexpr bool brain = std::is_same<S, Bf16>::value;
    const int a = x & kSize, b = y & kSize, below = x >> 15, from = (a ^ -below) + below, to = y >> 15 ? -b : b;
    const int step = to > from ? 1 : -1, moved = x + (step ^ -below) + below;  // away from 0 where both point there
    int found = a == 0 ? (y & 0x8000) | 1 : moved;
    found = from == to ? (brain ? y : x) : found;
    return (a > b ? a : b) > kInfinite<S> ? (brain ? 0x7fc0 : 0x7e00) : found;
}

// Whether the next number after one that is finite is infinite, for which NumPy warns of float16.
template <class S> RL_INLINE int leaves(int x, int found) {
    return ((found & kSize) - kInfinite<S>) | ((x & kSize) - (kInfinite<S> - 1)) ? 0 : 1;
}

// Those of some numbers without gaps in the direction of as many others, or of one; whether any is infinite.
template <class S, bool kOne> int neighbours_of(const uint16_t *x, const uint16_t *y, uint16_t *o, long begin, long end) {
    int some = 0;
#pragma omp simd reduction(| : some)
    for (long i = begin; i < end; ++i) {
        const int from = x[i], found = next<S>(from, y[kOne ? 0 : i]);
        some |= leaves<S>(from, found);
        o[i] = (uint16_t)found;
    }
    return some;
}

template <class S> void neighbours(char **args, const Size *count, const Size *step) {
    const Size n = count[0], sx = step[0], sy = step[1], so = step[2], size = sizeof(S);
    const auto *x = reinterpret_cast<const uint16_t *>(args[0]), *y = reinterpret_cast<const uint16_t *>(args[1]);
    auto *o = reinterpret_cast<uint16_t *>(args[2]);
    std::atomic<int> beyond{0};
    const bool far = apart(args[2], args[0], n * size) && apart(args[2], args[1], sy ? n * size : size);
    if (far && sx == size && so == size && (sy == size || sy == 0)) {
        parallel_for(n, 2 * kGrain, [=, &beyond](long begin, long end) {
            beyond |= sy ? neighbours_of<S, false>(x, y, o, begin, end) : neighbours_of<S, true>(x, y, o, begin, end);
        });
    } else {
        for (Size i = 0; i < n; ++i) {
            const int from = at<S>(args[0], i * sx).bits, found = next<S>(from, at<S>(args[1], i * sy).bits);
            beyond |= leaves<S>(from, found);
            at<S>(args[2], i * so).bits = (uint16_t)found;
        }
    }
    if (beyond && std::is_same<S, F16>::value) std::feraiseexcept(FE_OVERFLOW);
}

}  // namespace
}  // namespace rl

// Comparisons with NaN raise a flag, for which NumPy would warn: it looks at flags when a loop is through.
#define LOOPS(NAME, KIND, PARAMETERS, EXPR, AFTER)                                                            \
    RL_EXPORT void rl_loop_##NAME##_bf16(char **args, const intptr_t *n, const intptr_t *step, void *) {      \
        using S = rl::Bf16;                                                                                   \
        rl::KIND<S>(args, n, step, [] PARAMETERS { return EXPR; });                                           \
        AFTER;                                                                                                \
    }                                                                                                         \
    RL_EXPORT void rl_loop_##NAME##_f16(char **args, const intptr_t *n, const intptr_t *step, void *) {       \
        using S = rl::F16;                                                                                    \
        rl::KIND<S>(args, n, step, [] PARAMETERS { return EXPR; });                                           \
        AFTER;                                                                                                \
    }
#define QUIET(NAME, KIND, PARAMETERS, EXPR) LOOPS(NAME, KIND, PARAMETERS, EXPR, std::feclearexcept(FE_INVALID))
#define LOOP(NAME, KIND, PARAMETERS, EXPR) LOOPS(NAME, KIND, PARAMETERS, EXPR, )
// What has the same bits in both.
#define BITS(NAME, KIND, PARAMETERS, EXPR)                                                                    \
    RL_EXPORT void rl_loop_##NAME##_bf16(char **args, const intptr_t *n, const intptr_t *step, void *) {      \
        rl::KIND<uint16_t>(args, n, step, [] PARAMETERS { return EXPR; });                                    \
    }                                                                                                         \
    RL_EXPORT void rl_loop_##NAME##_f16(char **args, const intptr_t *n, const intptr_t *step, void *) {       \
        rl::KIND<uint16_t>(args, n, step, [] PARAMETERS { return EXPR; });                                    \
    }
// For each a place for the loop that NumPy had for float16, which is called for sums of rows.
#define SUMS(NAME, EXPR)                                                                                      \
    extern "C" {                                                                                              \
    __attribute__((visibility("default"))) rl::Former rl_former_##NAME = {nullptr, nullptr};                  \
    }                                                                                                         \
    RL_EXPORT void rl_loop_##NAME##_bf16(char **args, const intptr_t *n, const intptr_t *step, void *) {      \
        rl::pairs<rl::Bf16>(args, n, step, [](auto x, auto y) { return EXPR; });                             \
    }                                                                                                         \
    RL_EXPORT void rl_loop_##NAME##_f16(char **args, const intptr_t *n, const intptr_t *step, void *data) {   \
        const bool sum = rl_former_##NAME && args[0] == args[2] && !step[0] && !step[2];                      \
        if (sum) return rl_former_##NAME.loop(args, n, step, data);                                           \
        rl::pairs<rl::F16>(args, n, step, [](auto x, auto y) { return EXPR; });                              \
    }
SUMS(add, x + y)
SUMS(subtract, x - y)
SUMS(multiply, x * y)
SUMS(true_divide, x / y)
QUIET(maximum, extremes, (auto x, auto y), rl::larger<S>(x, y))
QUIET(minimum, extremes, (auto x, auto y), rl::smaller<S>(x, y))
BITS(copysign, pairs, (auto x, auto y), (uint16_t)((x & 0x7fff) | (y & 0x8000)))
BITS(negative, singles, (auto x), (uint16_t)(x ^ 0x8000))
BITS(absolute, singles, (auto x), (uint16_t)(x & 0x7fff))
LOOP(square, singles, (auto x), x * x)
LOOP(sqrt, singles, (float x), std::sqrt(x))
LOOP(reciprocal, singles, (auto x), 1.0f / x)
LOOP(floor, singles, (float x), std::floor(x))
LOOP(ceil, singles, (float x), std::ceil(x))
LOOP(trunc, singles, (float x), std::trunc(x))
LOOP(rint, singles, (float x), std::nearbyint(x))
QUIET(greater, truths, (float x, float y), x > y)
QUIET(greater_equal, truths, (float x, float y), x >= y)
QUIET(less, truths, (float x, float y), x < y)
QUIET(less_equal, truths, (float x, float y), x <= y)
QUIET(equal, truths, (float x, float y), x == y)
QUIET(not_equal, truths, (float x, float y), x != y)
LOOP(isnan, kinds, (uint16_t x), (x & rl::kSize) > rl::kInfinite<S>)
LOOP(isinf, kinds, (uint16_t x), (x & rl::kSize) == rl::kInfinite<S>)
LOOP(isfinite, kinds, (uint16_t x), (x & rl::kSize) < rl::kInfinite<S>)
LOOP(signbit, kinds, (uint16_t x), x >> 15)
LOOP(logical_not, kinds, (uint16_t x), (x & rl::kSize) == 0)
QUIET(logical_and, truths, (float x, float y), (x != 0) & (y != 0))
QUIET(logical_or, truths, (float x, float y), (x != 0) | (y != 0))
QUIET(logical_xor, truths, (float x, float y), (x != 0) != (y != 0))
RL_EXPORT void rl_loop_nextafter_bf16(char **args, const intptr_t *n, const intptr_t *step, void *) { rl::neighbours<rl::Bf16>(args, n, step); }
RL_EXPORT void rl_loop_nextafter_f16(char **args, const intptr_t *n, const intptr_t *step, void *) { rl::neighbours<rl::F16>(args, n, step); }
RL_EXPORT void rl_loop_copies(char *to, intptr_t by, const char *from, intptr_t step, intptr_t n, int swap, void *) {
    rl::copied(to, by, from, step, n, swap);
}
