// What lies between the two products of attention, on a block of scores (heads, rows, columns) in place.
//
// With first >= 0 row r sees columns up to first + r only (causal).
#include "attention.h"

namespace rl {

// Columns of row r that count; the rest of the row is set to 0.
template <class T> RL_INLINE long visible(T *s, long r, long columns, long first) {
    long n = first < 0 || first + r + 1 > columns ? columns : first + r + 1;
    for (long i = n; i < columns; ++i) s[i] = 0;
    return n;
}

template <class T>
static void softmax(T *s, Mask<T> mask, T *lse, long heads, long rows, long columns, long first, T scale) {
    parallel_for(heads * rows, row_grain(columns), [=](long begin, long end) {
        for (long k = begin; k < end; ++k) {
            long h = k / rows, r = k % rows;
            T *row = s + k * columns;
            long n = visible(row, r, columns, first);
            mask.add(row, h, r, n, scale);
            lse[k] = exp_row(row, n, n);
        }
    });
}

// Scores to probabilities once more, from the logarithm of their sum.
template <class T>
static void again(T *s, Mask<T> mask, const T *lse, long heads, long rows, long columns, long first, T scale) {
    parallel_for(heads * rows, row_grain(columns), [=](long begin, long end) {
        for (long k = begin; k < end; ++k) {
            long h = k / rows, r = k % rows;
            T *row = s + k * columns, l = lse[k];
            long n = visible(row, r, columns, first);
            mask.add(row, h, r, n, scale);
            if (l == -infinity<T>()) l = infinity<T>();  // a row without columns: all zero
            T all = 0;
#pragma omp simd reduction(+ : all)
            for (long i = 0; i < n; ++i) {
                row[i] = rl::exp(row[i] - l);
                all += row[i];
            }
            if (T share = whole(all); share != T(1)) {
#pragma omp simd
                for (long i = 0; i < n; ++i) row[i] *= share;
            }
        }
    });
}

// d = p * (d - the mean of d by p) * scale, along rows
template <class T> static void slope(const T *p, T *d, long heads, long rows, long columns, T scale) {
    parallel_for(heads * rows, row_grain(columns), [=](long begin, long end) {
        for (long k = begin; k < end; ++k) {
            const T *a = p + k * columns;
            T *b = d + k * columns, t = 0, all = 0;
#pragma omp simd reduction(+ : t, all)
            for (long i = 0; i < columns; ++i) {
                t += a[i] * b[i];
                all += a[i];
            }
            if (all != 0) t /= all;
#pragma omp simd
            for (long i = 0; i < columns; ++i) b[i] = a[i] * (b[i] - t) * scale;
        }
    });
}

}  // namespace rl

#define ALL(T, S)                                                                                              \
    RL_EXPORT void rl_attention_softmax_##S(Array *s_, Array *mask_, Array *lse_, long first, double scale) {  \
        rl::Call call("attention_softmax");                                                                    \
        long heads = call.size("scores", s_, 0), rows = call.size("scores", s_, 1), columns = call.size("scores", s_, 2); \
        T *s = call.out<T>("scores", s_, heads, rows, columns), *lse = call.out<T>("lse", lse_, heads, rows);  \
        rl::Mask<T> mask(call, mask_, 1, heads, rows, columns);                                                \
        call.run([=] { rl::softmax<T>(s, mask, lse, heads, rows, columns, first, (T)scale); });                \
    }                                                                                                          \
    RL_EXPORT void rl_attention_again_##S(Array *s_, Array *mask_, Array *lse_, long first, double scale) {    \
        rl::Call call("attention_again");                                                                      \
        long heads = call.size("scores", s_, 0), rows = call.size("scores", s_, 1), columns = call.size("scores", s_, 2); \
        T *s = call.out<T>("scores", s_, heads, rows, columns);                                                \
        const T *lse = call.in<T>("lse", lse_, heads, rows);                                                   \
        rl::Mask<T> mask(call, mask_, 1, heads, rows, columns);                                                \
        call.run([=] { rl::again<T>(s, mask, lse, heads, rows, columns, first, (T)scale); });                  \
    }                                                                                                          \
    RL_EXPORT void rl_attention_slope_##S(Array *p_, Array *d_, double scale) {                                \
        rl::Call call("attention_slope");                                                                      \
        long heads = call.size("scores", p_, 0), rows = call.size("scores", p_, 1), columns = call.size("scores", p_, 2); \
        const T *p = call.in<T>("scores", p_, heads, rows, columns);                                           \
        T *d = call.out<T>("gradient", d_, heads, rows, columns);                                              \
        call.run([=] { rl::slope<T>(p, d, heads, rows, columns, (T)scale); });                                 \
    }
RL_BOTH(ALL)
