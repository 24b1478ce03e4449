// A row added to every row of a matrix, and sums of large arrays.
#include "common.h"

namespace rl {

template <class T> static void add_row(T *x, const T *row, long R, long C) {
    parallel_for(R, row_grain(C), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            T *to = x + r * C;
#pragma omp simd
            for (long c = 0; c < C; ++c) to[c] += row[c];
        }
    });
}

template <class T> static void add(const T *x, const T *y, T *o, long n) {
    parallel_for(n, 4 * kGrain, [=](long begin, long end) {
#pragma omp simd
        for (long i = begin; i < end; ++i) o[i] = x[i] + y[i];
    });
}

}  // namespace rl

#define ALL(T, S)                                                                                    \
    RL_EXPORT void rl_add_row_##S(Array *x_, Array *row_, long R, long C) {                          \
        rl::Call call("add_row");                                                                    \
        T *x = call.out<T>("input", x_, R, C);                                                       \
        const T *row = call.in<T>("row", row_, C);                                                   \
        call.run([=] { rl::add_row<T>(x, row, R, C); });                                             \
    }                                                                                                \
    RL_EXPORT void rl_add_##S(Array *x_, Array *y_, Array *o_, long n) {                             \
        rl::Call call("add");                                                                        \
        const T *x = call.pair_in<T>("input", x_, n), *y = call.pair_in<T>("other", y_, n);          \
        T *o = call.pair_out<T>("out", o_, n);                                                       \
        call.run([=] { rl::add<T>(x, y, o, n); });                                                   \
    }
RL_BOTH(ALL)
