// Functions of each element and of pairs of elements: `n` of them, any shape; the output may be an input.
#pragma once
#include "sixteen.h"
#include "vecmath.h"

namespace rl {

template <class T, class F> static void map1(const T *x, T *o, long n, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
        turn(x + begin, o + begin, end - begin, [=](long, auto v) -> decltype(f(v)) { return f(v); });
    });
}

template <class T, class F> static void map2(const T *x, const T *y, T *o, long n, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
        turn2(x + begin, y + begin, o + begin, end - begin, [=](long, auto v, auto w) -> decltype(f(v, w)) { return f(v, w); });
    });
}

}  // namespace rl

// Kernels of an expression in `v`, or in a gradient `g` and what was saved, `v`, which are numbers of type T.
#define UNARY(NAME, EXPR)                                                                     \
    template <class S> static void NAME##_all(Array *x_, Array *o_, long n) {                 \
        rl::Call call(#NAME);                                                                 \
        const S *x = call.pair_in<S>("input", x_, n);                                         \
        S *o = call.pair_out<S>("out", o_, n);                                                \
        using T = rl::WideOf<S>;                                                              \
        call.run([=] { rl::map1(x, o, n, [](T v) -> T { return EXPR; }); });                  \
    }                                                                                         \
    RL_EXPORT void rl_##NAME##_f16(Array *x, Array *o, long n) { NAME##_all<rl::F16>(x, o, n); } \
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
    RL_EXPORT void rl_##NAME##_f16(Array *x, Array *y, Array *o, long n) { NAME##_all<rl::F16>(x, y, o, n); } \
    RL_EXPORT void rl_##NAME##_bf16(Array *x, Array *y, Array *o, long n) { NAME##_all<rl::Bf16>(x, y, o, n); } \
    RL_EXPORT void rl_##NAME##_f32(Array *x, Array *y, Array *o, long n) { NAME##_all<float>(x, y, o, n); } \
    RL_EXPORT void rl_##NAME##_f64(Array *x, Array *y, Array *o, long n) { NAME##_all<double>(x, y, o, n); }
