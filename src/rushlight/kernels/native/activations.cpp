// Elementwise functions and their gradients.  `n` elements, any shape; the output may be an input.
#include "maps.h"

namespace rl {

constexpr double kInvSqrtTwoPi = 0.39894228040143267794;
constexpr double kTanhScale = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kTanhCube = 0.044715;

template <class T> RL_INLINE T gelu_exact(T x) { return x * rl::normal(x); }

// (1 + tanh y) / 2 is sigmoid(2 y), which is cheaper than tanh.
template <class T> RL_INLINE T gelu_tanh_gate(T x) {
    return rl::sigmoid(T(2 * kTanhScale) * (x + T(kTanhCube) * x * x * x));
}

template <class T> RL_INLINE T gelu_tanh(T x) { return x * gelu_tanh_gate(x); }

template <class T> RL_INLINE T gelu_exact_slope(T x) {
    return rl::normal(x) + x * (rl::exp(T(-0.5) * x * x) * T(kInvSqrtTwoPi));
}

template <class T> RL_INLINE T gelu_tanh_slope(T x) {
    T s = gelu_tanh_gate(x);
    T inner_slope = T(2 * kTanhScale) * (T(1) + T(3) * T(kTanhCube) * x * x);
    return s + x * s * (T(1) - s) * inner_slope;
}

template <class T> static void gelu(const T *x, T *o, long n, int tanh_form) {
    if (tanh_form) map1(x, o, n, [](WideOf<T> v) { return gelu_tanh(v); });
    else map1(x, o, n, [](WideOf<T> v) { return gelu_exact(v); });
}

template <class T> static void gelu_backward(const T *g, const T *x, T *o, long n, int tanh_form) {
    if (tanh_form) map2(g, x, o, n, [](WideOf<T> d, WideOf<T> v) { return d * gelu_tanh_slope(v); });
    else map2(g, x, o, n, [](WideOf<T> d, WideOf<T> v) { return d * gelu_exact_slope(v); });
}

template <class T> static void softplus(const T *x, T *o, long n, WideOf<T> beta, WideOf<T> limit) {
    WideOf<T> inverse = WideOf<T>(1) / beta;
    map1(x, o, n, [=](WideOf<T> v) { return choose(v * beta > limit, v, log1p_exp(v * beta) * inverse); });
}

template <class T> static void softplus_backward(const T *g, const T *x, T *o, long n, WideOf<T> beta, WideOf<T> limit) {
    map2(g, x, o, n, [=](WideOf<T> d, WideOf<T> v) { return choose(v * beta > limit, d, d * sigmoid(v * beta)); });
}

// The exponential linear units: `scale` times v over 0, else `low` (e^(inner v) - 1).
template <class T> static void elu(const T *x, T *o, long n, WideOf<T> low, WideOf<T> scale, WideOf<T> inner) {
    map1(x, o, n, [=](WideOf<T> v) { return choose(v > 0, v * scale, rl::expm1(v * inner) * low); });
}

// By the result, whose sign is that of the input.
template <class T> static void elu_backward(const T *g, const T *y, T *o, long n, WideOf<T> low, WideOf<T> scale, WideOf<T> inner) {
    map2(g, y, o, n, [=](WideOf<T> d, WideOf<T> v) { return d * (v <= 0 ? (v + low) * inner : scale); });
}

template <class T>
static void elu_backward_of_input(const T *g, const T *x, T *o, long n, WideOf<T> low, WideOf<T> scale, WideOf<T> inner) {
    const WideOf<T> steep = low * inner;
    map2(g, x, o, n, [=](WideOf<T> d, WideOf<T> v) { return d * choose(v <= 0, rl::exp(v * inner) * steep, scale); });
}

// g / (v (1 - v)) from `low` to `high`, beyond them `other`.
template <class T> RL_INLINE T logit_slope(T g, T v, T low, T high, T other) {
    T slope = g / (v * (T(1) - v));
    return choose((v >= low) & (v <= high), slope, other);
}

// g where the mask is set.  It is read in any case: a load that depends on the mask is not made SIMD code of.
template <class T> RL_INLINE T masked(T g, uint8_t mask) { return mask ? g : T(0); }
RL_INLINE Bf16 masked(Bf16 g, uint8_t mask) { return {uint16_t(g.bits & -uint16_t(mask != 0))}; }
RL_INLINE F16 masked(F16 g, uint8_t mask) { return {uint16_t(g.bits & -uint16_t(mask != 0))}; }

template <class T> static void relu_backward_mask(const T *g, const uint8_t *mask, T *o, long n) {
    parallel_for(n, kGrain, [=](long begin, long end) {
#pragma omp simd
        for (long i = begin; i < end; ++i) o[i] = masked(g[i], mask[i]);
    });
}

}  // namespace rl

UNARY(exp, rl::exp(v))
UNARY(log, rl::log(v))
UNARY(tanh, rl::tanh(v))
UNARY(erf, rl::erf(v))
UNARY(sigmoid, rl::sigmoid(v))
UNARY(silu, v / (1 + rl::exp(-v)))
UNARY(reciprocal_root, 1 / std::sqrt(v))

BINARY(silu_backward, g * (rl::sigmoid(v) * (1 + v * (1 - rl::sigmoid(v)))))
BINARY(sigmoid_backward, g * ((1 - v) * v))
BINARY(tanh_backward, g * (1 - v * v))
BINARY(relu_backward, v <= 0 ? T(0) : g)

#define REST(T, S)                                                                                     \
    RL_EXPORT void rl_gelu_##S(Array *x_, Array *o_, long n, int tanh_form) {                          \
        rl::Call call("gelu");                                                                         \
        const T *x = call.pair_in<T>("input", x_, n);                                                  \
        T *o = call.pair_out<T>("out", o_, n);                                                         \
        call.run([=] { rl::gelu(x, o, n, tanh_form); });                                               \
    }                                                                                                  \
    RL_EXPORT void rl_gelu_backward_##S(Array *g_, Array *x_, Array *o_, long n, int tanh_form) {      \
        rl::Call call("gelu_backward");                                                                \
        const T *g = call.pair_in<T>("gradient", g_, n), *x = call.pair_in<T>("input", x_, n);         \
        T *o = call.pair_out<T>("out", o_, n);                                                         \
        call.run([=] { rl::gelu_backward(g, x, o, n, tanh_form); });                                   \
    }                                                                                                  \
    RL_EXPORT void rl_softplus_##S(Array *x_, Array *o_, long n, double beta, double limit) {          \
        rl::Call call("softplus");                                                                     \
        const T *x = call.pair_in<T>("input", x_, n);                                                  \
        T *o = call.pair_out<T>("out", o_, n);                                                         \
        call.run([=] { rl::softplus(x, o, n, (rl::WideOf<T>)beta, (rl::WideOf<T>)limit); });                                   \
    }                                                                                                  \
    RL_EXPORT void rl_softplus_backward_##S(Array *g_, Array *x_, Array *o_, long n, double beta,      \
                                            double limit) {                                            \
        rl::Call call("softplus_backward");                                                            \
        const T *g = call.pair_in<T>("gradient", g_, n), *x = call.pair_in<T>("input", x_, n);         \
        T *o = call.pair_out<T>("out", o_, n);                                                         \
        call.run([=] { rl::softplus_backward(g, x, o, n, (rl::WideOf<T>)beta, (rl::WideOf<T>)limit); });                       \
    }                                                                                                  \
    RL_EXPORT void rl_elu_##S(Array *x_, Array *o_, long n, double low, double scale, double inner) {  \
        rl::Call call("elu");                                                                          \
        const T *x = call.pair_in<T>("input", x_, n);                                                  \
        T *o = call.pair_out<T>("out", o_, n);                                                         \
        using W = rl::WideOf<T>;                                                                       \
        call.run([=] { rl::elu(x, o, n, (W)low, (W)scale, (W)inner); });                               \
    }                                                                                                  \
    RL_EXPORT void rl_elu_backward_##S(Array *g_, Array *y_, Array *o_, long n, double low, double scale, \
                                       double inner) {                                                 \
        rl::Call call("elu_backward");                                                                 \
        const T *g = call.pair_in<T>("gradient", g_, n), *y = call.pair_in<T>("result", y_, n);        \
        T *o = call.pair_out<T>("out", o_, n);                                                         \
        using W = rl::WideOf<T>;                                                                       \
        call.run([=] { rl::elu_backward(g, y, o, n, (W)low, (W)scale, (W)inner); });                   \
    }                                                                                                  \
    RL_EXPORT void rl_elu_backward_of_input_##S(Array *g_, Array *x_, Array *o_, long n, double low,   \
                                                double scale, double inner) {                          \
        rl::Call call("elu_backward_of_input");                                                        \
        const T *g = call.pair_in<T>("gradient", g_, n), *x = call.pair_in<T>("input", x_, n);         \
        T *o = call.pair_out<T>("out", o_, n);                                                         \
        using W = rl::WideOf<T>;                                                                       \
        call.run([=] { rl::elu_backward_of_input(g, x, o, n, (W)low, (W)scale, (W)inner); });          \
    }                                                                                                  \
    RL_EXPORT void rl_logit_backward_##S(Array *g_, Array *x_, Array *o_, long n, double low,          \
                                         double high, double other) {                                  \
        rl::Call call("logit_backward");                                                               \
        const T *g = call.pair_in<T>("gradient", g_, n), *x = call.pair_in<T>("input", x_, n);         \
        T *o = call.pair_out<T>("out", o_, n);                                                         \
        using W = rl::WideOf<T>;                                                                       \
        const W a = (W)low, b = (W)high, c = (W)other;                                                 \
        call.run([=] { rl::map2(g, x, o, n, [=](W d, W v) { return rl::logit_slope(d, v, a, b, c); }); }); \
    }                                                                                                  \
    RL_EXPORT void rl_relu_backward_mask_##S(Array *g_, Array *mask_, Array *o_, long n) {             \
        rl::Call call("relu_backward_mask");                                                           \
        const T *g = call.pair_in<T>("gradient", g_, n);                                               \
        const uint8_t *mask = call.pair_in<uint8_t>("mask", mask_, n);                                 \
        T *o = call.pair_out<T>("out", o_, n);                                                         \
        call.run([=] { rl::relu_backward_mask(g, mask, o, n); });                                      \
    }
RL_ALL(REST)
