// Masks and the softmax of a row of scores.
//
// The mask is a T to add (kind 1) or a byte that says which columns count (kind 2), with its own strides for
// batch, heads and rows (0 where it broadcasts).
#pragma once
#include "reduce.h"

namespace rl {

template <class T> struct Mask {
    const void *data = nullptr;
    int kind = 0;
    long batch = 0, head = 0, row = 0;  // strides in elements

    Mask() = default;

    // None, or (B, H, L, S), or (H, L, S), where an axis of one stands for all heads.
    Mask(Call &call, const Array *a, long B, long H, long L, long S) {
        if (Call::none(a)) return;
        kind = call.is_array("mask", a) && a->descr->itemsize == 1 ? 2 : 1;
        if (kind == 2) take(call.rows<const uint8_t>("mask", a, B, H, L, S, true));
        else take(call.rows<const T>("mask", a, B, H, L, S, true));
    }

    // That of a batch element and head alone.
    Mask of(long b, long h) const {
        Mask found = *this;
        long place = b * batch + h * head;
        if (kind == 1) found.data = static_cast<const T *>(data) + place;
        if (kind == 2) found.data = static_cast<const uint8_t *>(data) + place;
        return found;
    }

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

  private:
    template <class U> void take(Place<const U> p) { data = p.data, batch = p.batch, head = p.head, row = p.row; }
};

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

}  // namespace rl
