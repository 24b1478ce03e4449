// float16 and bfloat16 to float32 and back, to nearest, ties to even; their sums, products and quotients, in float32 and rounded.
// Arrays come as unsigned numbers of 16 bits; the output may be an input.
#include "sixteen.h"

namespace rl {
namespace {

constexpr long kMany = 4 * kGrain;

template <class S, class F> void joined(const S *x, const S *y, S *o, long n, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
        turn2(x + begin, y + begin, o + begin, end - begin, [=](long, float a, float b) { return f(a, b); });
    });
}

}  // namespace
}  // namespace rl

#define PAIR(NAME, T, S, SIGN)                                                                           \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *y_, Array *o_, long n) {                            \
        rl::Call call(#NAME);                                                                            \
        const T *x = call.pair_in<T>("input", x_, n), *y = call.pair_in<T>("other", y_, n);              \
        T *o = call.pair_out<T>("out", o_, n);                                                           \
        call.run([=] { rl::joined(x, y, o, n, [](float a, float b) { return a SIGN b; }); });            \
    }
// Beside one number, which float32 holds and 16 bits need not.
#define BESIDE(NAME, T, S, EXPR)                                                                         \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *o_, long n, double number) {                        \
        rl::Call call(#NAME);                                                                            \
        const T *x = call.pair_in<T>("input", x_, n);                                                    \
        T *o = call.pair_out<T>("out", o_, n);                                                           \
        const float b = (float)number;                                                                   \
        call.run([=] {                                                                                   \
            rl::parallel_for(n, rl::kGrain, [=](long from, long to) {                                    \
                rl::turn(x + from, o + from, to - from, [=](long, float a) { return EXPR; });            \
            });                                                                                          \
        });                                                                                              \
    }
#define HALVES(T, S)                                                                                     \
    PAIR(add, T, S, +)                                                                                   \
    PAIR(subtract, T, S, -)                                                                              \
    PAIR(multiply, T, S, *)                                                                              \
    PAIR(divide, T, S, /)                                                                                \
    BESIDE(add_number, T, S, a + b)                                                                      \
    BESIDE(subtract_number, T, S, a - b)                                                                 \
    BESIDE(multiply_number, T, S, a * b)                                                                 \
    BESIDE(divide_number, T, S, a / b)                                                                   \
    BESIDE(number_subtract, T, S, b - a)                                                                 \
    BESIDE(number_divide, T, S, b / a)                                                                   \
    RL_EXPORT void rl_widen_##S(Array *x_, Array *o_, long n) {                                          \
        rl::Call call("widen");                                                                          \
        const T *x = call.pair_in<T>("input", x_, n);                                                    \
        float *o = call.pair_out<float>("out", o_, n);                                                   \
        call.run([=] {                                                                                   \
            rl::parallel_for(n, rl::kMany, [=](long b, long e) { rl::widen(x + b, o + b, e - b); });     \
        });                                                                                              \
    }                                                                                                    \
    RL_EXPORT void rl_narrow_##S(Array *x_, Array *o_, long n) {                                         \
        rl::Call call("narrow");                                                                         \
        const float *x = call.pair_in<float>("input", x_, n);                                            \
        T *o = call.pair_out<T>("out", o_, n);                                                           \
        call.run([=] {                                                                                   \
            rl::parallel_for(n, rl::kMany, [=](long b, long e) { rl::narrow(x + b, o + b, e - b); });    \
        });                                                                                              \
    }
HALVES(rl::Bf16, bf16)
HALVES(rl::F16, f16)
