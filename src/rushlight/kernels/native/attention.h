// Masks and the softmax of a row of scores.
//
// The mask is a T to add (kind 1) or a byte that says which columns count (kind 2), with its own strides for
// batch, heads and rows (0 where it broadcasts).
#pragma once
#include "reduce.h"

namespace rl {

constexpr long kBlock = 64;  // rows of scores at once

RL_INLINE long up_to(long n, long unit) { return (n + unit - 1) / unit * unit; }

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

// A row of scores as what they weigh, of which `room` may be written: what lies past n becomes 0, so that no vector is cut short.  Returns the
// logarithm of the sum of their exponentials.
template <class T> static T exp_row(T *s, long n, long room) {
    for (; n < room; ++n) s[n] = -infinity<T>();
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

// What a row's weights, which sum to `all`, are multiplied by to sum to 1.  Beside a score as large as the least number, of which masks are
// made, the logarithm of their sum is lost in rounding: where a row's scores are all that number, each weight came out as 1.
template <class T> static T whole(T all) { return all > T(0) && (all < T(0.9999) || all > T(1.0001)) ? T(1) / all : T(1); }

// One row of the scores' gradient: p * (d - the mean of d by p) * scale, in place of d; p anew from its score.  0 from `count` to `end`.
// room: as in exp_row
template <class T> static void slope_row(T *p, T *d, T lse, long count, long room, long end, T scale) {
    for (long i = count; i < room; ++i) p[i] = -infinity<T>(), d[i] = 0;
    T l = lse == -infinity<T>() ? infinity<T>() : lse, delta = 0, all = 0;
#pragma omp simd reduction(+ : delta, all)
    for (long i = 0; i < room; ++i) {
        p[i] = rl::exp(p[i] - l);
        delta += p[i] * d[i];
        all += p[i];
    }
    if (all != 0) delta /= all;
    if (T share = whole(all); share != T(1)) {
#pragma omp simd
        for (long i = 0; i < room; ++i) p[i] *= share;
    }
#pragma omp simd
    for (long i = 0; i < room; ++i) d[i] = p[i] * (d[i] - delta) * scale;
    for (long i = count; i < end; ++i) d[i] = 0;
}

// What attention is of.  q, k, v, out and g may lie at any strides that leave rows gapless; W: what is computed in.
template <class T, class W = T> struct Operands {
    long B, H, L, S, E, V;
    bool causal;
    Place<const T> q, k, v;
    Mask<W> mask;
    W scale;

    Operands(Call &call, const Array *q_, const Array *k_, const Array *v_, const Array *mask_, int causal, double scale)
        : B(call.size("query", q_, 0)), H(call.size("query", q_, 1)), L(call.size("query", q_, 2)),
          S(call.size("key", k_, 2)), E(call.size("query", q_, 3)), V(call.size("value", v_, 3)), causal(causal),
          q(call.rows<const T>("query", q_, B, H, L, E)), k(call.rows<const T>("key", k_, B, H, S, E)),
          v(call.rows<const T>("value", v_, B, H, S, V)), mask(call, mask_, B, H, L, S), scale((W)scale) {
        call.expect(elements(B, H, L, S, E, V) > 0, "sizes that are positive");
    }

    // Columns that some of these rows see, and that one row sees of so many.
    long columns(long first, long rows) const { return causal && first + rows < S ? first + rows : S; }
    long seen(long row, long columns) const { return causal && row + 1 < columns ? row + 1 : columns; }

    // f(batch element, head) for each, on all threads.
    template <class F> void each_head(F f) const {
        long heads = H;
        parallel_tasks(B * H, B * H * L * S * E, [=](long begin, long end) {
            for (long t = begin; t < end; ++t) f(t / heads, t % heads);
        });
    }
};

}  // namespace rl
