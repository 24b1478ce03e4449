// Remainders and rounded quotients of numbers, to the last bit those of C's fmod and of Python's % and //.  `n` pairs, any
// shape, or numbers and one divisor; the output may be an input.
#include "maps.h"

namespace rl {

#if defined(__FMA__) || defined(__aarch64__)
constexpr bool kFused = true;
#else
constexpr bool kFused = false;
#endif

// What truncated division leaves, in SIMD code; `rare` where this is no way to compute it.
//
// In float64 the quotient of two float32 numbers is on the right side of any whole number below 2^28, and its product with the
// divisor is exact: so is the difference, which float32 holds.
RL_INLINE float left(float x, float y, bool &rare) {
    double a = x, b = y, q = std::trunc(a / b);
    rare = !(std::fabs(q) < 0x1p28) | !(std::fabs(y) < infinity<float>());
    return std::copysign((float)(a - q * b), x);
}

// Of float64 the quotient may have been rounded up to a whole number; then what is left has the other sign, and is exact as well.
RL_INLINE double left(double x, double y, bool &rare) {
    if (!kFused) return rare = true, 0;
    double q = std::trunc(x / y);
    rare = !(std::fabs(q) < 0x1p52) | !(std::fabs(y) < infinity<double>());
    double r = std::fma(-q, y, x), back = r + std::copysign(y, x);
    r = (r < 0) != (x < 0) && r != 0 ? back : r;
    return std::copysign(r, x);
}

constexpr long kSome = 64;

// f of numbers, divisors and what is left: some at a time, of which those that are rare are computed one by one.
// y: a divisor for each number, or nullptr where all have `one`, which is written out: loops for its sign or for 0 are not made.
template <class U, class F, class T = WideOf<U>> static void divided(const U *x, const U *y, T one, U *o, long n, F f) {
    parallel_for(n, kGrain / 4, [=](long begin, long end) {
        Part<U, kSome> numbers, divisors;
        T rest[kSome], same[kSome], made[kPlain<U> ? 1 : kSome];
        for (long k = 0; k < kSome; ++k) same[k] = one;
        for (long start = begin; start < end; start += kSome) {
            const long count = end - start < kSome ? end - start : kSome;
            const T *from = numbers(x + start, count), *by = y ? divisors(y + start, count) : same;
            T *to = made;
            if constexpr (kPlain<U>) to = o + start;
            int any = 0;
#pragma omp simd reduction(| : any)
            for (long k = 0; k < count; ++k) {
                bool rare;
                rest[k] = left(from[k], by[k], rare);
                any |= rare;
            }
            for (long k = 0; any && k < count; ++k) {
                bool rare;
                left(from[k], by[k], rare);
                if (rare) rest[k] = std::fmod(from[k], by[k]);
            }
#pragma omp simd
            for (long k = 0; k < count; ++k) to[k] = f(from[k], by[k], rest[k]);
            if constexpr (!kPlain<U>) narrow(made, o + start, count);
        }
    });
}

template <class T> RL_INLINE T truncated(T, T, T rest) { return rest; }

// With the sign of the divisor; so is 0.
template <class T> RL_INLINE T floored(T, T y, T rest) {
    T moved = choose((y < 0) != (rest < 0), rest + y, rest);
    return choose(rest != 0, moved, std::copysign(T(0), y));
}

// The whole number that the division of the rest makes up to rounding.
template <class T> RL_INLINE T quotient(T x, T y, T rest) {
    T exact = x / y, d = (x - rest) / y;
    d = choose((rest != 0) & ((y < 0) != (rest < 0)), d - T(1), d);
    T whole = std::floor(d);
    whole = choose(d - whole > T(0.5), whole + T(1), whole);
    whole = choose(d != 0, whole, std::copysign(T(0), exact));
    return choose(y == 0, exact, whole);
}

}  // namespace rl

#define DIVISION(NAME, F, U, S)                                                                            \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *y_, Array *o_, long n) {                              \
        rl::Call call(#NAME);                                                                              \
        using T = rl::WideOf<U>;                                                                           \
        const U *x = call.pair_in<U>("input", x_, n), *y = call.pair_in<U>("other", y_, n);                \
        U *o = call.pair_out<U>("out", o_, n);                                                             \
        call.run([=] { rl::divided(x, y, T(0), o, n, [](T a, T b, T r) { return rl::F(a, b, r); }); }); \
    }                                                                                                      \
    RL_EXPORT void rl_##NAME##_by_##S(Array *x_, Array *o_, long n, double y) {                            \
        rl::Call call(#NAME "_by");                                                                        \
        using T = rl::WideOf<U>;                                                                           \
        const U *x = call.pair_in<U>("input", x_, n);                                                      \
        U *o = call.pair_out<U>("out", o_, n);                                                             \
        call.run([=] { rl::divided(x, (const U *)nullptr, (T)y, o, n, [](T a, T b, T r) { return rl::F(a, b, r); }); }); \
    }
#define TRUNCATED(U, S)                                                                                    \
    RL_EXPORT void rl_truncated_quotient_##S(Array *x_, Array *y_, Array *o_, long n) {                    \
        rl::Call call("truncated_quotient");                                                               \
        using T = rl::WideOf<U>;                                                                           \
        const U *x = call.pair_in<U>("input", x_, n), *y = call.pair_in<U>("other", y_, n);                \
        U *o = call.pair_out<U>("out", o_, n);                                                             \
        call.run([=] { rl::map2(x, y, o, n, [](T a, T b) { return std::trunc(a / b); }); });               \
    }
#define ALL(U, S)                           \
    TRUNCATED(U, S)                         \
    DIVISION(fmod, truncated, U, S)         \
    DIVISION(remainder, floored, U, S)      \
    DIVISION(floor_divide, quotient, U, S)
RL_ALL(ALL)
