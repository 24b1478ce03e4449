// Functions of each element and of pairs of elements: `n` of them, any shape; the output may be an input.
#pragma once
#include "vecmath.h"

namespace rl {

template <class T, class F> static void map1(const T *x, T *o, long n, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
#pragma omp simd
        for (long i = begin; i < end; ++i) o[i] = f(x[i]);
    });
}

template <class T, class F> static void map2(const T *x, const T *y, T *o, long n, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
#pragma omp simd
        for (long i = begin; i < end; ++i) o[i] = f(x[i], y[i]);
    });
}

}  // namespace rl

// Kernels for both dtypes of an expression in `v`, or in a gradient `g` and what was saved, `v`.
#define UNARY(NAME, EXPR)                                                                     \
    template <class T> static void NAME##_all(Array *x_, Array *o_, long n) {                 \
        rl::Call call(#NAME);                                                                 \
        const T *x = call.pair_in<T>("input", x_, n);                                         \
        T *o = call.pair_out<T>("out", o_, n);                                                \
        call.run([=] { rl::map1(x, o, n, [](T v) -> T { return EXPR; }); });                  \
    }                                                                                         \
    RL_EXPORT void rl_##NAME##_f32(Array *x, Array *o, long n) { NAME##_all<float>(x, o, n); } \
    RL_EXPORT void rl_##NAME##_f64(Array *x, Array *o, long n) { NAME##_all<double>(x, o, n); }

#define BINARY(NAME, EXPR)                                                                                  \
    template <class T> static void NAME##_all(Array *x_, Array *y_, Array *o_, long n) {                    \
        rl::Call call(#NAME);                                                                               \
        const T *x = call.pair_in<T>("gradient", x_, n), *y = call.pair_in<T>("saved", y_, n);              \
        T *o = call.pair_out<T>("out", o_, n);                                                              \
        call.run([=] { rl::map2(x, y, o, n, [](T g, T v) -> T { return EXPR; }); });                        \
    }                                                                                                       \
    RL_EXPORT void rl_##NAME##_f32(Array *x, Array *y, Array *o, long n) { NAME##_all<float>(x, y, o, n); } \
    RL_EXPORT void rl_##NAME##_f64(Array *x, Array *y, Array *o, long n) { NAME##_all<double>(x, y, o, n); }
