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
    parallel_for((C + kUnit - 1) / kUnit, kGrain / (R * kUnit) + 1, [=](long begin, long end) {
        for (long first = begin * kUnit; first < end * kUnit && first < C; first += kUnit) {
            long some = C - first < kUnit ? C - first : kUnit;
            T *to = sum + first;
            for (long c = 0; c < some; ++c) to[c] = 0;
            for (long r = 0; r < R; ++r) {
                const T *from = x + r * C + first;
#pragma omp simd
                for (long c = 0; c < some; ++c) to[c] += from[c];
            }
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
    RL_EXPORT void rl_add_row_##S(Array *x, Array *row, long R, long C) {                            \
        rl::add_row<T>(ptr<T>(x), ptr<T>(row), R, C);                                                \
    }                                                                                                \
    RL_EXPORT void rl_sum_rows_##S(Array *x, Array *sum, long R, long C) {                           \
        rl::sum_rows<T>(ptr<T>(x), ptr<T>(sum), R, C);                                               \
    }                                                                                                \
    RL_EXPORT void rl_add_##S(Array *x, Array *y, Array *o, long n) {                                \
        rl::add<T>(ptr<T>(x), ptr<T>(y), ptr<T>(o), n);                                              \
    }
RL_BOTH(ALL)
