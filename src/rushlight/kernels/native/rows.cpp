// A row added to every row of a matrix, and the sum of a matrix's rows: what a bias needs.
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
    constexpr long kUnit = 64;  // columns whose sums stay in registers
    parallel_for((C + kUnit - 1) / kUnit, kGrain / (R * kUnit) + 1, [=](long begin, long end) {
        for (long unit = begin; unit < end; ++unit) {
            long first = unit * kUnit, some = C - first < kUnit ? C - first : kUnit;
            T total[kUnit] = {};
            for (long r = 0; r < R; ++r) {
                const T *from = x + r * C + first;
                if (some == kUnit) {
#pragma omp simd
                    for (long c = 0; c < kUnit; ++c) total[c] += from[c];
                } else {
                    for (long c = 0; c < some; ++c) total[c] += from[c];
                }
            }
            std::memcpy(sum + first, total, some * sizeof(T));
        }
    });
}

}  // namespace rl

#define ALL(T, S)                                                                                    \
    RL_EXPORT void rl_add_row_##S(Array *x, Array *row, long R, long C) {                            \
        rl::add_row<T>(ptr<T>(x), ptr<T>(row), R, C);                                                \
    }                                                                                                \
    RL_EXPORT void rl_sum_rows_##S(Array *x, Array *sum, long R, long C) {                           \
        rl::sum_rows<T>(ptr<T>(x), ptr<T>(sum), R, C);                                               \
    }
RL_BOTH(ALL)
