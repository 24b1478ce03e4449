// Sums and maxima of a row.  The order of a sum is fixed by the row's length alone.
#pragma once
#include "lanes.h"
#include "vecmath.h"

namespace rl {

template <int kLanes, class T> RL_INLINE T row_max_by(const T *x, long n) {
    T lane[kLanes];
    for (int k = 0; k < kLanes; ++k) lane[k] = -infinity<T>();
    long i = 0;
    for (; i + kLanes <= n; i += kLanes)
#pragma omp simd
        for (int k = 0; k < kLanes; ++k) lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    for (int k = 0; i < n; ++i, ++k) lane[k] = x[i] > lane[k] ? x[i] : lane[k];
    for (int width = kLanes / 2; width > 0; width /= 2)
        for (int k = 0; k < width; ++k) lane[k] = lane[k + width] > lane[k] ? lane[k + width] : lane[k];
    return lane[0];
}

// The elements of a row too short for a vector, followed by `rest` to make one: a loop that is cut short takes them one by one.
template <class T> RL_INLINE void padded(const T *x, long n, T rest, T *to) {
    for (long i = 0; i < kVector<T>; ++i) to[i] = rest;
    for (long i = 0; i < n; ++i) to[i] = x[i];
}

// The largest element; NaN is passed over, -infinity if there is nothing else.
template <class T> RL_INLINE T row_max(const T *x, long n) {
    if (n >= 4 * kVector<T>) return row_max_by<4 * kVector<T>>(x, n);
    if (n >= kVector<T>) return row_max_by<kVector<T>>(x, n);
    T v[kVector<T>];
    padded(x, n, -infinity<T>(), v);
#pragma omp simd
    for (long i = 0; i < kVector<T>; ++i) v[i] = v[i] == v[i] ? v[i] : -infinity<T>();
    return lanes_joined(v, [](auto a, auto b) { return a > b ? a : b; });
}

// The exponentials of a vector's elements above `m`, in their place; their sum.
template <class T> RL_INLINE T exp_of_vector(T *v, T m) {
#pragma omp simd
    for (long i = 0; i < kVector<T>; ++i) v[i] = rl::exp(v[i] - m);
    return lanes_joined(v, [](auto a, auto b) { return a + b; });
}

// The sum of the exponentials of a row above `m`.
template <class T> RL_INLINE T exp_sum(const T *x, long n, T m) {
    const long whole = n - n % kVector<T>;
    T s = 0;
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < whole; ++i) s += rl::exp(x[i] - m);
    if (whole == n) return s;
    T last[kVector<T>];
    padded(x + whole, n - whole, -infinity<T>(), last);
    return s + exp_of_vector(last, m);
}

// The same, each of them in `o`, which may be `x`.
template <class T> RL_INLINE T exp_each(const T *x, T *o, long n, T m) {
    const long whole = n - n % kVector<T>;
    T s = 0;
#pragma omp simd reduction(+ : s)
    for (long i = 0; i < whole; ++i) {
        const T e = rl::exp(x[i] - m);
        o[i] = e;
        s += e;
    }
    if (whole == n) return s;
    T last[kVector<T>];
    padded(x + whole, n - whole, -infinity<T>(), last);
    s += exp_of_vector(last, m);
    for (long i = whole; i < n; ++i) o[i] = last[i - whole];
    return s;
}

}  // namespace rl
