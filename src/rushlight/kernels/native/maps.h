// Functions of each element and of pairs of elements: `n` of them, any shape; the output may be an input.
#pragma once
#include "vecmath.h"

namespace rl {

struct Bf16 {
    uint16_t bits;
};
template <> struct Kind<Bf16> : Kind<uint16_t> {};

// What numbers are computed in, and there and back.
template <class T> struct Wide {
    typedef T type;
};
template <> struct Wide<Bf16> {
    typedef float type;
};
template <class T> using WideOf = typename Wide<T>::type;

RL_INLINE float widened(float x) { return x; }
RL_INLINE double widened(double x) { return x; }
RL_INLINE float widened(Bf16 x) {
    const uint32_t bits = (uint32_t)x.bits << 16;
    float out;
    std::memcpy(&out, &bits, 4);
    return out;
}

template <class T> RL_INLINE T narrowed(WideOf<T> x) { return x; }
template <> RL_MEMBER Bf16 narrowed<Bf16>(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    const uint32_t up = bits + 0x7fff + (bits >> 16 & 1), nan = -(uint32_t)(x != x);  // without a branch, which is no SIMD code
    return {(uint16_t)(((up & ~nan) | ((bits | 0x400000) & nan)) >> 16)};
}

template <class T, class F> static void map1(const T *x, T *o, long n, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
#pragma omp simd
        for (long i = begin; i < end; ++i) o[i] = narrowed<T>(f(widened(x[i])));
    });
}

template <class T, class F> static void map2(const T *x, const T *y, T *o, long n, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
#pragma omp simd
        for (long i = begin; i < end; ++i) o[i] = narrowed<T>(f(widened(x[i]), widened(y[i])));
    });
}

}  // namespace rl

// Kernels for float32, float64 and bfloat16 of an expression in `v`, or in a gradient `g` and what was saved, `v`.
#define UNARY(NAME, EXPR)                                                                     \
    template <class S> static void NAME##_all(Array *x_, Array *o_, long n) {                 \
        rl::Call call(#NAME);                                                                 \
        const S *x = call.pair_in<S>("input", x_, n);                                         \
        S *o = call.pair_out<S>("out", o_, n);                                                \
        using T = rl::WideOf<S>;                                                              \
        call.run([=] { rl::map1(x, o, n, [](T v) -> T { return EXPR; }); });                  \
    }                                                                                         \
    RL_EXPORT void rl_##NAME##_bf16(Array *x, Array *o, long n) { NAME##_all<rl::Bf16>(x, o, n); } \
    RL_EXPORT void rl_##NAME##_f32(Array *x, Array *o, long n) { NAME##_all<float>(x, o, n); } \
    RL_EXPORT void rl_##NAME##_f64(Array *x, Array *o, long n) { NAME##_all<double>(x, o, n); }

#define BINARY(NAME, EXPR)                                                                                  \
    template <class S> static void NAME##_all(Array *x_, Array *y_, Array *o_, long n) {                    \
        rl::Call call(#NAME);                                                                               \
        const S *x = call.pair_in<S>("gradient", x_, n), *y = call.pair_in<S>("saved", y_, n);              \
        S *o = call.pair_out<S>("out", o_, n);                                                              \
        using T = rl::WideOf<S>;                                                                            \
        call.run([=] { rl::map2(x, y, o, n, [](T g, T v) -> T { return EXPR; }); });                        \
    }                                                                                                       \
    RL_EXPORT void rl_##NAME##_bf16(Array *x, Array *y, Array *o, long n) { NAME##_all<rl::Bf16>(x, y, o, n); } \
    RL_EXPORT void rl_##NAME##_f32(Array *x, Array *y, Array *o, long n) { NAME##_all<float>(x, y, o, n); } \
    RL_EXPORT void rl_##NAME##_f64(Array *x, Array *y, Array *o, long n) { NAME##_all<double>(x, y, o, n); }
