// Powers whose exponents are whole numbers, and their gradients.  `n` elements, any shape; the output may be an input.
#include <algorithm>

#include "maps.h"

namespace rl {
namespace {

constexpr long kBlock = 256;  // elements whose squares stay in the first-level cache

// o[i] = f(x[i], o[i])
template <class T, class F> RL_INLINE void each(const T *x, T *o, long n, F f) {
#pragma omp simd
    for (long i = 0; i < n; ++i) o[i] = f(x[i], o[i]);
}

// Products by squares in double, rounded once: nothing in between overflows or vanishes that the power of a float32 number does not.
template <class T> void by_squares(const T *x, T *o, long n, long exponent) {
    double square[kBlock], found[kBlock];
#pragma omp simd
    for (long i = 0; i < n; ++i) square[i] = x[i], found[i] = 1;
    for (long rest = exponent < 0 ? -exponent : exponent; rest; rest >>= 1) {
        if (rest & 1) each(square, found, n, [](double v, double w) { return v * w; });
        if (rest > 1) each(square, square, n, [](double v, double) { return v * v; });
    }
    if (exponent < 0) each(found, found, n, [](double v, double) { return 1 / v; });
#pragma omp simd
    for (long i = 0; i < n; ++i) o[i] = (T)found[i];
}

// Of up to kBlock elements: those of few factors in their own precision.
template <class T> void power_of_some(const T *x, T *o, long n, long exponent) {
    switch (exponent) {
        case 1: return each(x, o, n, [](T v, T) { return v; });
        case 2: return each(x, o, n, [](T v, T) { return v * v; });
        case 3: return each(x, o, n, [](T v, T) { return v * (v * v); });
        case -1: return each(x, o, n, [](T v, T) { return 1 / v; });
        case -2: return each(x, o, n, [](T v, T) { return 1 / (v * v); });
        default: return by_squares(x, o, n, exponent);
    }
}

// f(where it begins, how many) of blocks.
template <class F> void by_blocks(long n, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
        for (long at = begin; at < end; at += kBlock) f(at, std::min(kBlock, end - at));
    });
}

// Some numbers where they go, or on their way to 16 bits.
template <class U> struct Made {
    alignas(64) float room[kPlain<U> ? 1 : kBlock];
    WideOf<U> *at(U *o) {
        if constexpr (kPlain<U>) return o;
        else return room;
    }
    void put(U *o, long n) const {
        if constexpr (!kPlain<U>) narrow(room, o, n);
    }
};

template <class U> void power(const U *x, U *o, long n, long exponent) {
    by_blocks(n, [=](long at, long some) {
        Part<U, kBlock> part;
        Made<U> made;
        power_of_some(part(x + at, some), made.at(o + at), some, exponent);
        made.put(o + at, some);
    });
}

// g * (x^(exponent - 1) * exponent)
template <class U, class T = WideOf<U>> void power_backward(const U *g, const U *x, U *o, long n, long exponent) {
    by_blocks(n, [=](long at, long some) {
        T slope[kBlock];
        Part<U, kBlock> part, given;
        Made<U> made;
        power_of_some(part(x + at, some), slope, some, exponent - 1);
        const T *from = given(g + at, some);
        T *to = made.at(o + at);
#pragma omp simd
        for (long i = 0; i < some; ++i) to[i] = from[i] * (slope[i] * (T)exponent);
        made.put(o + at, some);
    });
}

}  // namespace
}  // namespace rl

#define ALL(T, S)                                                                                        \
    RL_EXPORT void rl_whole_power_##S(Array *x_, Array *o_, long n, int exponent) {                      \
        rl::Call call("whole_power");                                                                    \
        const T *x = call.pair_in<T>("input", x_, n);                                                    \
        T *o = call.pair_out<T>("out", o_, n);                                                           \
        call.run([=] { rl::power(x, o, n, exponent); });                                                 \
    }                                                                                                    \
    RL_EXPORT void rl_whole_power_backward_##S(Array *g_, Array *x_, Array *o_, long n, int exponent) {  \
        rl::Call call("whole_power_backward");                                                           \
        const T *g = call.pair_in<T>("gradient", g_, n), *x = call.pair_in<T>("input", x_, n);           \
        T *o = call.pair_out<T>("out", o_, n);                                                           \
        call.run([=] { rl::power_backward(g, x, o, n, exponent); });                                     \
    }
RL_ALL(ALL)
