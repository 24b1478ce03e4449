// What lies between the two products of attention, on a block of scores (heads, rows, columns) in place.
//
// The mask is a T to add (kind 1) or a byte that says which columns count (kind 2), with its own strides for
// heads and rows (0 where it broadcasts).  With first >= 0 row r sees columns up to first + r only (causal).
#include "reduce.h"

namespace rl {

template <class T> struct Mask {
    const void *data;
    int kind;
    long head, row;  // strides in elements

    RL_MEMBER void add(T *s, long h, long r, long n, T scale) const {
        if (kind == 1) {
            const T *m = static_cast<const T *>(data) + h * head + r * row;
#pragma omp simd
            for (long i = 0; i < n; ++i) s[i] = s[i] * scale + m[i];
        } else if (kind == 2) {
            const uint8_t *m = static_cast<const uint8_t *>(data) + h * head + r * row;
#pragma omp simd
            for (long i = 0; i < n; ++i) s[i] = m[i] ? s[i] * scale : -infinity<T>();
        } else {
#pragma omp simd
            for (long i = 0; i < n; ++i) s[i] *= scale;
        }
    }
};

// Columns of row r that count; the rest of the row is set to 0.
template <class T> RL_INLINE long visible(T *s, long r, long columns, long first) {
    long n = first < 0 || first + r + 1 > columns ? columns : first + r + 1;
    for (long i = n; i < columns; ++i) s[i] = 0;
    return n;
}

template <class T> static T exp_row(T *s, long n) {
    T m = row_max(s, n), total = 0;
    bool nothing = m == -infinity<T>();  // unless a NaN is among them
    T shift = nothing ? T(0) : m;
#pragma omp simd reduction(+ : total)
    for (long i = 0; i < n; ++i) {
        T e = rl::exp(s[i] - shift);
        s[i] = e;
        total += e;
    }
    T scale = total == T(0) ? T(0) : T(1) / total;
#pragma omp simd
    for (long i = 0; i < n; ++i) s[i] *= scale;
    return shift + rl::log(total);
}

template <class T>
static void softmax(T *s, Mask<T> mask, T *lse, long heads, long rows, long columns, long first, T scale) {
    parallel_for(heads * rows, row_grain(columns), [=](long begin, long end) {
        for (long k = begin; k < end; ++k) {
            long h = k / rows, r = k % rows;
            T *row = s + k * columns;
            long n = visible(row, r, columns, first);
            mask.add(row, h, r, n, scale);
            lse[k] = exp_row(row, n);
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
#pragma omp simd
            for (long i = 0; i < n; ++i) row[i] = rl::exp(row[i] - l);
        }
    });
}

// d = p * (d - delta) * scale, delta a number a row
template <class T>
static void slope(const T *p, T *d, const T *delta, long heads, long rows, long columns, T scale) {
    parallel_for(heads * rows, row_grain(columns), [=](long begin, long end) {
        for (long k = begin; k < end; ++k) {
            const T *a = p + k * columns;
            T *b = d + k * columns, t = delta[k];
#pragma omp simd
            for (long i = 0; i < columns; ++i) b[i] = a[i] * (b[i] - t) * scale;
        }
    });
}

}  // namespace rl

#define ALL(T, S)                                                                                              \
    RL_EXPORT void rl_attention_softmax_##S(Array *s, Array *mask, int kind, long head, long row, Array *lse,  \
                                            long heads, long rows, long columns, long first, double scale) {   \
        rl::Mask<T> m{ptr<void>(mask), kind, head, row};                                                       \
        rl::softmax<T>(ptr<T>(s), m, ptr<T>(lse), heads, rows, columns, first, (T)scale);                      \
    }                                                                                                          \
    RL_EXPORT void rl_attention_again_##S(Array *s, Array *mask, int kind, long head, long row, Array *lse,    \
                                          long heads, long rows, long columns, long first, double scale) {     \
        rl::Mask<T> m{ptr<void>(mask), kind, head, row};                                                       \
        rl::again<T>(ptr<T>(s), m, ptr<T>(lse), heads, rows, columns, first, (T)scale);                        \
    }                                                                                                          \
    RL_EXPORT void rl_attention_slope_##S(Array *p, Array *d, Array *delta, long heads, long rows,             \
                                          long columns, double scale) {                                        \
        rl::slope<T>(ptr<T>(p), ptr<T>(d), ptr<T>(delta), heads, rows, columns, (T)scale);                     \
    }
RL_BOTH(ALL)
