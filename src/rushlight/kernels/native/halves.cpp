// float16 and bfloat16 to float32 and back, to nearest, ties to even; their sums, products and quotients, in float32 and rounded.
// Arrays come as unsigned numbers of 16 bits; the output may be an input.
#include <algorithm>

#include "sixteen.h"

namespace rl {
namespace {

constexpr long kMany = 4 * kGrain;

template <class S, class F> void joined(const S *x, const S *y, S *o, long n, F f) {
    parallel_for(n, kGrain, [=](long begin, long end) {
        turn2(x + begin, y + begin, o + begin, end - begin, [=](long, auto a, auto b) { return f(a, b); });
    });
}

// An integer in the order of numbers, 0 for both zeros and `nan` for what is none.
template <class S> RL_INLINE int16_t order_key(S x, int16_t nan) {
    constexpr int16_t kInfinite = std::is_same<S, Bf16>::value ? 0x7f80 : 0x7c00;
    const int16_t bits = (int16_t)x.bits, size = (int16_t)(bits & 0x7fff), sign = (int16_t)(bits >> 15);
    const int16_t key = (int16_t)((size ^ sign) - sign);
    return size > kInfinite ? nan : key;
}

// The first place of the greatest of a row, or of the least; a NaN is either.
template <class S, bool kLeast> long extreme_at(const S *x, long n) {
    const int16_t none = kLeast ? INT16_MIN : INT16_MAX;
    int16_t best = order_key(x[0], none);
    if (kLeast) {
#pragma omp simd reduction(min : best)
        for (long i = 0; i < n; ++i) best = std::min(best, order_key(x[i], none));
    } else {
#pragma omp simd reduction(max : best)
        for (long i = 0; i < n; ++i) best = std::max(best, order_key(x[i], none));
    }
    constexpr int16_t kLook = 128;
    for (long at = 0;; at += kLook) {
        const auto some = (int16_t)std::min<long>(kLook, n - at);
        int16_t first = kLook;
#pragma omp simd reduction(min : first)
        for (int16_t i = 0; i < some; ++i) first = std::min(first, order_key(x[at + i], none) == best ? i : kLook);
        if (first < kLook) return at + first;
    }
}

template <class S> void extremes_at(const S *x, int64_t *o, long rows, long n, bool least) {
    parallel_for(rows, row_grain(n / 4), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) o[r] = least ? extreme_at<S, true>(x + r * n, n) : extreme_at<S, false>(x + r * n, n);
    });
}

}  // namespace
}  // namespace rl

#define PAIR(NAME, T, S, SIGN)                                                                           \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *y_, Array *o_, long n) {                            \
        rl::Call call(#NAME);                                                                            \
        const T *x = call.pair_in<T>("input", x_, n), *y = call.pair_in<T>("other", y_, n);              \
        T *o = call.pair_out<T>("out", o_, n);                                                           \
        call.run([=] { rl::joined(x, y, o, n, [](auto a, auto b) { return a SIGN b; }); });            \
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
                rl::turn(x + from, o + from, to - from, [=](long, auto a) { return EXPR; });            \
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
    RL_EXPORT void rl_extremes_at_##S(Array *x_, Array *o_, long rows, long n, int least) {              \
        rl::Call call("extremes_at");                                                                    \
        call.expect(n > 0, "at least one element");                                                      \
        const T *x = call.pair_in<T>("input", x_, rows * n);                                             \
        int64_t *o = call.out<int64_t>("out", o_, rows);                                                 \
        call.run([=] { rl::extremes_at(x, o, rows, n, least); });                                        \
    }                                                                                                    \
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
