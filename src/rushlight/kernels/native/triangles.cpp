// Substitution: solving with small triangular matrices, of which larger ones are made of halves and products.
#include <algorithm>

#include "common.h"

namespace rl {

template <class T> constexpr long kTogether = 128 / sizeof(T);  // columns whose sums stay in registers
constexpr long kShared = 1L << 20;                              // multiplications from which on threads share

// `width` columns of x (N, M) in place, M elements from row to row.  What is divided by 0 becomes infinite.
template <long kWidth, class T> RL_INLINE void substitute_columns(Matrix<const T> a, T *x, long pitch, long width, bool upper) {
    const long n = a.rows;
    for (long step = 0; step < n; ++step) {
        const long i = upper ? n - 1 - step : step, first = upper ? i + 1 : 0, end = upper ? n : i;
        alignas(64) T sum[kTogether<T>];
        const long count = kWidth ? kWidth : width;
#pragma omp simd
        for (long l = 0; l < count; ++l) sum[l] = x[i * pitch + l];
        for (long j = first; j < end; ++j) {
            const T by = *a.at(i, j);
            const T *from = x + j * pitch;
#pragma omp simd
            for (long l = 0; l < count; ++l) sum[l] -= by * from[l];
        }
        const T by = *a.at(i, i);
#pragma omp simd
        for (long l = 0; l < count; ++l) x[i * pitch + l] = sum[l] / by;
    }
}

// a (B, N, N), of which one triangle is read, and x (B, N, M), which becomes a^-1 x.  Whether a's strides are such that this was
// done.
template <class T> static long substitute_all(Array *a_, Array *x_, bool upper) {
    Call call("substitute");
    const auto a = call.matrix<T>("triangles", a_);
    if (!a.data) return 0;
    const long columns = call.size("right", x_, 2), n = a.rows;
    T *x = call.out<T>("right", x_, a.batch, n, columns);
    call.expect(a.rows == a.columns, "triangles: square matrices");
    const long groups = (columns + kTogether<T> - 1) / kTogether<T>;
    call.run([=] {
        parallel_for(a.batch * groups, kShared / (n * n * kTogether<T> + 1) + 1, [=](long begin, long end) {
            for (long i = begin; i < end; ++i) {
                const long one = i / groups, at = i % groups * kTogether<T>, width = std::min(kTogether<T>, columns - at);
                T *from = x + one * n * columns + at;
                if (width == kTogether<T>) substitute_columns<kTogether<T>>(a.one(one), from, columns, width, upper);
                else substitute_columns<0>(a.one(one), from, columns, width, upper);
            }
        });
    });
    return 1;
}

}  // namespace rl

#define RL_SUBSTITUTE(T, suffix) \
    RL_EXPORT long rl_substitute_##suffix(Array *a, Array *x, int upper) { return rl::substitute_all<T>(a, x, upper); }
RL_BOTH(RL_SUBSTITUTE)
