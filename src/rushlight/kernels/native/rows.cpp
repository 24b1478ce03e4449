// A row added to every row of a matrix, the sum of a matrix's rows (what a bias needs), and sums of large arrays.
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

// Each piece owns some columns, so that the order of every sum is that of the rows.
template <class T> static void sum_rows(const T *x, T *sum, long R, long C) {
    constexpr long kUnit = 256;  // columns: long enough to be read ahead, short enough to stay in the cache
    constexpr long kRows = 1024;  // rows added up in their own precision before the sum goes on in double
    parallel_for((C + kUnit - 1) / kUnit, kGrain / (R * kUnit) + 1, [=](long begin, long end) {
        for (long first = begin * kUnit; first < end * kUnit && first < C; first += kUnit) {
            long some = C - first < kUnit ? C - first : kUnit;
            T run[kUnit];
            double total[kUnit] = {};
            for (long top = 0; top < R; top += kRows) {
                long end = top + kRows < R ? top + kRows : R;
                for (long c = 0; c < some; ++c) run[c] = 0;
                for (long r = top; r < end; ++r) {
                    const T *from = x + r * C + first;
#pragma omp simd
                    for (long c = 0; c < some; ++c) run[c] += from[c];
                }
                for (long c = 0; c < some; ++c) total[c] += run[c];
            }
            for (long c = 0; c < some; ++c) sum[first + c] = (T)total[c];
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
    RL_EXPORT void rl_sum_rows_##S(Array *x_, Array *sum_, long R, long C) {                         \
        rl::Call call("sum_rows");                                                                   \
        const T *x = call.in<T>("input", x_, R, C);                                                  \
        T *sum = call.out<T>("sum", sum_, C);                                                        \
        call.run([=] { rl::sum_rows<T>(x, sum, R, C); });                                            \
    }                                                                                                \
    RL_EXPORT void rl_add_##S(Array *x_, Array *y_, Array *o_, long n) {                             \
        rl::Call call("add");                                                                        \
        const T *x = call.pair_in<T>("input", x_, n), *y = call.pair_in<T>("other", y_, n);          \
        T *o = call.pair_out<T>("out", o_, n);                                                       \
        call.run([=] { rl::add<T>(x, y, o, n); });                                                   \
    }
RL_BOTH(ALL)
