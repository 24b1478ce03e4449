// Functions made of straight pieces and parabolas, elementwise.  `n` elements, any shape; the output may be an input.
#include "maps.h"

namespace rl {

// NaN stays; `high` wins where the bounds cross.
template <class T> RL_INLINE T clamp(T v, T low, T high) {
    v = v < low ? low : v;
    return v > high ? high : v;
}

// Half the square of a distance up to `delta`, straight beyond it; times `scale`.
template <class T> RL_INLINE T huber(T d, T delta, T scale) {
    d = d < 0 ? -d : d;
    T near = d > delta ? delta : d;
    return scale * near * (d - T(0.5) * near);
}

// x + weight * (end - x), exact at both ends.
template <class S, class T = WideOf<S>> static void lerp(const S *x, const S *end, S *o, long n, T weight) {
    const bool near = std::fabs(weight) < T(0.5);
    const T part = near ? weight : weight - T(1);
    map2(x, end, o, n, [=](T a, T b) { return (near ? a : b) + part * (b - a); });
}

// The same of weights of their own.
template <class T> RL_INLINE T between(T a, T b, T weight) {
    const bool near = std::fabs(weight) < T(0.5);
    const T part = near ? weight : weight - T(1), from = near ? a : b;
    return from + part * (b - a);
}

template <class S, class T = WideOf<S>> static void lerp_each(const S *x, const S *end, const S *weight, S *o, long n) {
    parallel_for(n, kGrain, [=](long at, long last) {
        turn3(x + at, end + at, weight + at, o + at, last - at, [](T a, T b, T part) { return between(a, b, part); });
    });
}

// o[i] = x[i] + f(a[i], b[i]), of which each step is rounded by itself: in one loop compilers join the last product and the sum.
template <class S, class F> static void add_each(const S *x, const S *a, const S *b, S *o, long n, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
        alignas(64) WideOf<S> made[kAtOnce];
        Part<S, kAtOnce> first, second, third;
        for (long at = begin; at < end; at += kAtOnce) {
            const long some = std::min(kAtOnce, end - at);
            const WideOf<S> *v = first(a + at, some), *w = second(b + at, some), *from = third(x + at, some);
#pragma omp simd
            for (long i = 0; i < some; ++i) made[i] = f(v[i], w[i]);
#pragma omp simd
            for (long i = 0; i < some; ++i) made[i] = from[i] + made[i];
            if constexpr (kPlain<S>) std::memcpy(o + at, made, sizeof(S) * some);
            else narrow(made, o + at, some);
        }
    });
}

// Finite numbers as they are.
template <class T> RL_INLINE T finite(T v, T nan, T above, T below) {
    T out = v == infinity<T>() ? above : v;
    out = v == -infinity<T>() ? below : out;
    return v != v ? nan : out;
}

// 0 below, whatever the gradient.
template <class T> RL_INLINE T hardswish_slope(T g, T v) {
    T middle = g * (v * T(1.0 / 3) + T(0.5)), out = v < 3 ? middle : g;
    return v <= -3 ? T(0) : out;
}

template <class T> RL_INLINE T leaky(T sign, T v, T slope) {
    T scaled = v * slope;  // of all, which is SIMD code
    return sign > 0 ? v : scaled;
}

}  // namespace rl

UNARY(sign, T((v > 0) - (v < 0)))
UNARY(hardswish, v * rl::clamp(v + 3, T(0), T(6)) * T(1.0 / 6))
UNARY(hardsigmoid, rl::clamp(v + 3, T(0), T(6)) / 6)
UNARY(softsign, v / (1 + (v < 0 ? -v : v)))
UNARY(angle_of_real, v != v ? v : v < 0 ? T(3.14159265358979323846) : T(0))
BINARY(not_0_backward, v == 0 ? T(0) : g)
BINARY(hardswish_backward, rl::hardswish_slope(g, v))

#define REST(U, S)                                                                                          \
    RL_EXPORT void rl_clamp_##S(Array *x_, Array *o_, long n, double low, double high) {                    \
        rl::Call call("clamp");                                                                             \
        using T = rl::WideOf<U>;                                                                            \
        const U *x = call.pair_in<U>("input", x_, n);                                                       \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        call.run([=] { rl::map1(x, o, n, [=](T v) { return rl::clamp(v, (T)low, (T)high); }); });           \
    }                                                                                                       \
    RL_EXPORT void rl_between_backward_##S(Array *g_, Array *x_, Array *o_, long n, double low, double high) { \
        rl::Call call("between_backward");                                                                  \
        using T = rl::WideOf<U>;                                                                            \
        const U *g = call.pair_in<U>("gradient", g_, n), *x = call.pair_in<U>("saved", x_, n);              \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        const T a = (T)low, b = (T)high;                                                                    \
        call.run([=] { rl::map2(g, x, o, n, [=](T d, T v) { return (v <= a) | (v >= b) ? T(0) : d; }); });  \
    }                                                                                                       \
    RL_EXPORT void rl_leaky_relu_##S(Array *x_, Array *o_, long n, double slope) {                          \
        rl::Call call("leaky_relu");                                                                        \
        using T = rl::WideOf<U>;                                                                            \
        const U *x = call.pair_in<U>("input", x_, n);                                                       \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        const T s = (T)slope;                                                                               \
        call.run([=] { rl::map1(x, o, n, [=](T v) { return rl::leaky(v, v, s); }); });                      \
    }                                                                                                       \
    RL_EXPORT void rl_leaky_relu_backward_##S(Array *g_, Array *x_, Array *o_, long n, double slope) {      \
        rl::Call call("leaky_relu_backward");                                                               \
        using T = rl::WideOf<U>;                                                                            \
        const U *g = call.pair_in<U>("gradient", g_, n), *x = call.pair_in<U>("saved", x_, n);              \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        const T s = (T)slope;                                                                               \
        call.run([=] { rl::map2(g, x, o, n, [=](T d, T v) { return rl::leaky(v, d, s); }); });              \
    }                                                                                                       \
    RL_EXPORT void rl_huber_##S(Array *x_, Array *y_, Array *o_, long n, double delta, double scale) {      \
        rl::Call call("huber");                                                                             \
        using T = rl::WideOf<U>;                                                                            \
        const U *x = call.pair_in<U>("input", x_, n), *y = call.pair_in<U>("target", y_, n);                \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        call.run([=] { rl::map2(x, y, o, n, [=](T a, T b) { return rl::huber(a - b, (T)delta, (T)scale); }); }); \
    }                                                                                                       \
    RL_EXPORT void rl_huber_slope_##S(Array *x_, Array *y_, Array *o_, long n, double delta, double scale) { \
        rl::Call call("huber_slope");                                                                       \
        using T = rl::WideOf<U>;                                                                            \
        const U *x = call.pair_in<U>("input", x_, n), *y = call.pair_in<U>("target", y_, n);                \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        const T d = (T)delta;                                                                               \
        call.run([=] { rl::map2(x, y, o, n, [=](T a, T b) { return rl::clamp(a - b, -d, d) * (T)scale; }); }); \
    }                                                                                                       \
    RL_EXPORT void rl_lerp_##S(Array *x_, Array *end_, Array *o_, long n, double weight) {                  \
        rl::Call call("lerp");                                                                              \
        using T = rl::WideOf<U>;                                                                            \
        const U *x = call.pair_in<U>("input", x_, n), *end = call.pair_in<U>("end", end_, n);               \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        call.run([=] { rl::lerp(x, end, o, n, (T)weight); });                                               \
    }                                                                                                       \
    RL_EXPORT void rl_scaled_sum_##S(Array *x_, Array *y_, Array *o_, long n, double factor) {                \
        rl::Call call("scaled_sum");                                                                        \
        using T = rl::WideOf<U>;                                                                            \
        const U *x = call.pair_in<U>("input", x_, n), *y = call.pair_in<U>("other", y_, n);                 \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        const T a = (T)factor;                                                                              \
        call.run([=] { rl::map2(x, y, o, n, [=](T v, T w) { return v + a * w; }); });                       \
    }                                                                                                       \
    RL_EXPORT void rl_hardshrink_##S(Array *x_, Array *o_, long n, double limit) {                          \
        rl::Call call("hardshrink");                                                                        \
        using T = rl::WideOf<U>;                                                                            \
        const U *x = call.pair_in<U>("input", x_, n);                                                       \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        const T a = (T)limit;                                                                               \
        call.run([=] { rl::map1(x, o, n, [=](T v) { return (v >= -a) & (v <= a) ? T(0) : v; }); });         \
    }                                                                                                       \
    RL_EXPORT void rl_softshrink_##S(Array *x_, Array *o_, long n, double limit) {                          \
        rl::Call call("softshrink");                                                                        \
        using T = rl::WideOf<U>;                                                                            \
        const U *x = call.pair_in<U>("input", x_, n);                                                       \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        const T a = (T)limit;                                                                               \
        call.run([=] { rl::map1(x, o, n, [=](T v) { return v - rl::clamp(v, -a, a); }); });                 \
    }                                                                                                       \
    RL_EXPORT void rl_finite_##S(Array *x_, Array *o_, long n, double nan, double above, double below) {    \
        rl::Call call("finite");                                                                            \
        using T = rl::WideOf<U>;                                                                            \
        const U *x = call.pair_in<U>("input", x_, n);                                                       \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        const T a = (T)nan, b = (T)above, c = (T)below;                                                     \
        call.run([=] { rl::map1(x, o, n, [=](T v) { return rl::finite(v, a, b, c); }); });                  \
    }
RL_ALL(REST)

#define EACH(U, S)                                                                                          \
    RL_EXPORT void rl_lerp_each_##S(Array *x_, Array *end_, Array *weight_, Array *o_, long n) {            \
        rl::Call call("lerp_each");                                                                         \
        const U *x = call.pair_in<U>("input", x_, n), *end = call.pair_in<U>("end", end_, n);               \
        const U *weight = call.pair_in<U>("weight", weight_, n);                                            \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        call.run([=] { rl::lerp_each(x, end, weight, o, n); });                                             \
    }                                                                                                       \
    ADDED(U, S, add_product, a * b)                                                                         \
    ADDED(U, S, add_quotient, a / b)
#define ADDED(U, S, NAME, EXPR)                                                                             \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *a_, Array *b_, Array *o_, long n, double factor) {     \
        rl::Call call(#NAME);                                                                               \
        using T = rl::WideOf<U>;                                                                            \
        const U *x = call.pair_in<U>("input", x_, n), *first = call.pair_in<U>("first", a_, n);             \
        const U *second = call.pair_in<U>("second", b_, n);                                                 \
        U *o = call.pair_out<U>("out", o_, n);                                                              \
        const T by = (T)factor;                                                                             \
        call.run([=] { rl::add_each(x, first, second, o, n, [=](T a, T b) { return EXPR * by; }); });       \
    }
RL_ALL(EACH)
