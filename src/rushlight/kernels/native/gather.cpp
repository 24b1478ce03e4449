// Cross entropy from logits, dropout with one bit a mask element.
#include <cmath>

#include "indices.h"
#include "memory.h"
#include "reduce.h"
#include "turned.h"

namespace rl {

// Of logits (O, C, I), a row for each of (O, I).  U: what logits are in memory, of 16 bits perhaps, T: what is computed with.
template <class U, class T = WideOf<U>> struct Entropy {
    const U *x;
    const T *w;
    const int64_t *target;
    long R, C, I, ignore;  // R rows, which are O * I
    T smoothing, weight_sum;

    T weight(long t) const { return w ? w[t] : T(1); }

    // row: that of r; top: its greatest logit; log_sum: of e^(logits - top). The top is taken away first: beside a large one the
    // logarithm would lose its digits.
    T loss(long r, const T *row, T top, T log_sum) const {
        long t = target[r];
        if (t == ignore) return 0;
        T out = (log_sum - (row[t] - top)) * weight(t) * (T(1) - smoothing);
        if (smoothing == 0) return out;
        T s = 0;
        if (w) {
#pragma omp simd reduction(+ : s)
            for (long c = 0; c < C; ++c) s += w[c] * (log_sum - (row[c] - top));
        } else {
#pragma omp simd reduction(+ : s)
            for (long c = 0; c < C; ++c) s += log_sum - (row[c] - top);
        }
        return out + s * (smoothing / T(C));
    }

    // The losses together, and the weights of the rows that count.
    void sums(const T *losses, double *to) const {
        double loss = 0, sum = 0;
        long count = 0;
#pragma omp simd reduction(+ : loss, count)
        for (long r = 0; r < R; ++r) loss += losses[r], count += target[r] != ignore;
        for (long r = 0; w && r < R; ++r) sum += target[r] == ignore ? T(0) : w[target[r]];
        to[0] = loss, to[1] = w ? sum : (double)count;
    }

    // denominator: the greatest logit and the sum of e^(logits - it)
    void gradient(long r, const T *row, T g, const T *denominator, T *o) const {
        long t = target[r];
        if (t == ignore) {
            for (long c = 0; c < C; ++c) o[c] = 0;
            return;
        }
        T direct = g * weight(t) * (T(1) - smoothing), spread = g * smoothing / T(C);
        const T top = denominator[0];
        T scale = (direct + spread * weight_sum) / denominator[1];
        if (C < kVector<T>) {
            exp_each(row, o, C, top);
            for (long c = 0; c < C; ++c) o[c] = o[c] * scale - (w && spread != 0 ? spread * w[c] : spread);
        } else if (w && spread != 0) {
#pragma omp simd
            for (long c = 0; c < C; ++c) o[c] = rl::exp(row[c] - top) * scale - spread * w[c];
        } else {
#pragma omp simd
            for (long c = 0; c < C; ++c) o[c] = rl::exp(row[c] - top) * scale - spread;
        }
        o[t] -= direct;
    }

    // f(first row, where its logits begin, how many) of rows that lie beside each other.
    template <class F> void tiles(F f) const {
        const long each = ceil_div(I, kTile);
        parallel_for(R / I * each, row_grain(C * std::min(I, kTile)), [&](long begin, long end) {
            for (long i = begin; i < end; ++i) {
                const long first = i % each * kTile, o = i / each;
                f(o * I + first, o * C * I + first, std::min(I - first, kTile));
            }
        });
    }

    // from: where the logits begin, each row's in a column; many of `wide` count.
    void tile_losses(long first, const T *from, long pitch, long many, long wide, T *loss, T *denominator) const {
        T m[kTile], s[kTile];
        tile_sums<T, false>(from, (T *)nullptr, C, pitch, 0, wide, m, s);
        T log_sum[kTile];
#pragma omp simd
        for (long j = 0; j < wide; ++j) log_sum[j] = rl::log(s[j]);
        for (long j = 0; j < many; ++j) {
            const long t = target[first + j];
            denominator[2 * j] = m[j], denominator[2 * j + 1] = s[j];
            loss[j] = t == ignore ? T(0) : (log_sum[j] - (from[t * pitch + j] - m[j])) * weight(t) * (T(1) - smoothing);
            s[j] = 0;
        }
        if (smoothing == 0) return;
        for (long c = 0; c < C; ++c) {
            const T by = weight(c), *row = from + c * pitch;
#pragma omp simd
            for (long j = 0; j < many; ++j) s[j] += by * (log_sum[j] - (row[j] - m[j]));
        }
        for (long j = 0; j < many; ++j) loss[j] += target[first + j] == ignore ? T(0) : s[j] * (smoothing / T(C));
    }

    // from, to: logits and their gradients, each row's in a column.  every: how far the gradients of losses lie apart, 0 where all have one.
    void tile_gradient(long first, const T *from, long pitch, long many, long wide, const T *g, long every, const T *denominator,
                       T *to) const {
        T direct[kTile], spread[kTile], scale[kTile], base[kTile], kept[kTile];
        for (long j = 0; j < many; ++j) {
            const long t = target[first + j];
            const T d = t == ignore ? T(0) : g[j * every];
            direct[j] = t == ignore ? T(0) : d * weight(t) * (T(1) - smoothing), spread[j] = d * smoothing / T(C);
            scale[j] = (direct[j] + spread[j] * weight_sum) / denominator[2 * j + 1];
            base[j] = denominator[2 * j], kept[j] = t != ignore;
        }
        for (long j = many; j < wide; ++j) spread[j] = scale[j] = base[j] = kept[j] = 0;
        for (long c = 0; c < C; ++c) {
            const T by = smoothing == 0 ? T(1) : weight(c), *row = from + c * pitch;
            T *out = to + c * pitch;
#pragma omp simd
            for (long j = 0; j < wide; ++j) {
                const T v = rl::exp(row[j] - base[j]) * scale[j] - spread[j] * by;
                out[j] = kept[j] != 0 ? v : T(0);
            }
        }
        for (long j = 0; j < many; ++j)
            if (target[first + j] != ignore) to[target[first + j] * pitch + j] -= direct[j];
    }

    bool has_few() const { return I == 1 && C <= kFew; }

    // f(first row, how many, their logits in columns) of some rows of few logits
    template <class F> void columns(F f) const {
        parallel_for(ceil_div(R, kTile), row_grain(C * kTile), [&](long begin, long end) {
            T room[kTile * kFew], wide[kPlain<U> ? 1 : kTile * kFew];
            for (long i = begin; i < end; ++i) {
                const long first = i * kTile, many = std::min(kTile, R - first);
                if constexpr (kPlain<U>) {
                    put_as_columns(x + first * C, room, many, C);
                } else {
                    widen(x + first * C, wide, many * C);
                    put_as_columns(wide, room, many, C);
                }
                f(first, many, room);
            }
        });
    }
};

// f(row, its logits as numbers that are computed with, room for as many, or the row's where it needs none) of all rows, which lie one by one.
template <class U, class F, class T = WideOf<U>> static void each_row(const Entropy<U> &k, F f) {
    parallel_for(k.R, row_grain(k.C), [=](long begin, long end) {
        Scratch<T> room(kPlain<U> ? 0 : k.C, false);
        for (long r = begin; r < end; ++r) {
            if constexpr (kPlain<U>) {
                f(r, k.x + r * k.C, (T *)nullptr);
            } else {
                widen(k.x + r * k.C, room.get(), k.C);
                f(r, room.get(), room.get());
            }
        }
    });
}

template <class U, class T = WideOf<U>> static void cross_entropy(const Entropy<U> &k, T *loss, T *denominator) {
    if (k.has_few())
        return k.columns([&](long r, long many, const T *from) { k.tile_losses(r, from, filled(many), many, filled(many), loss + r, denominator + 2 * r); });
    if constexpr (kPlain<U>)
        if (k.I != 1)
            return k.tiles([&](long r, long at, long many) { k.tile_losses(r, k.x + at, k.I, many, many, loss + r, denominator + 2 * r); });
    each_row(k, [=](long r, const T *row, T *) {
        const T m = row_max(row, k.C);
        denominator[2 * r] = m, denominator[2 * r + 1] = exp_sum(row, k.C, m);
        loss[r] = k.loss(r, row, m, rl::log(denominator[2 * r + 1]));
    });
}

template <class U, class T = WideOf<U>>
static void cross_entropy_backward(const Entropy<U> &k, const T *g, long every, const T *denominator, U *o) {
    if (k.has_few())
        return k.columns([&](long r, long many, T *from) {
            k.tile_gradient(r, from, filled(many), many, filled(many), g + r * every, every, denominator + 2 * r, from);
            if constexpr (kPlain<U>) {
                put_as_rows(from, o + r * k.C, many, k.C);
            } else {
                T rows[kTile * kFew];
                put_as_rows(from, rows, many, k.C);
                narrow(rows, o + r * k.C, many * k.C);
            }
        });
    if constexpr (kPlain<U>) {
        if (k.I != 1)
            return k.tiles([&](long r, long at, long many) {
                k.tile_gradient(r, k.x + at, k.I, many, many, g + r * every, every, denominator + 2 * r, o + at);
            });
        each_row(k, [=](long r, const T *row, T *) { k.gradient(r, row, g[r * every], denominator + 2 * r, o + r * k.C); });
    } else {
        each_row(k, [=](long r, const T *row, T *room) {
            k.gradient(r, row, g[r * every], denominator + 2 * r, room);
            narrow(room, o + r * k.C, k.C);
        });
    }
}

// From a multiple of 8 on: the bits of a vector's elements lie in whole bytes, of which each lane keeps its own.
template <class T> static void scale_by_bits(const T *x, const uint8_t *bits, T *o, long begin, long end, T scale) {
    using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    typedef T Vector __attribute__((vector_size(64)));
    typedef Word Words __attribute__((vector_size(64)));
    constexpr int kWide = 64 / (int)sizeof(T);
    Words lane = {};
    for (int k = 0; k < kWide; ++k) lane[k] = (Word)1 << k;
    const Vector scales = Vector{} + scale;
    long i = begin;
    for (; i + kWide <= end; i += kWide) {
        Word word = 0;
        for (int k = 0; k < kWide / 8; ++k) word |= (Word)bits[(i >> 3) + k] << 8 * k;
        Vector v;
        std::memcpy(&v, x + i, sizeof v);
        v *= (Vector)((Words)scales & (Words)(((Words{} + word) & lane) != 0));
        std::memcpy(o + i, &v, sizeof v);
    }
    for (; i < end; ++i) o[i] = x[i] * ((bits[i >> 3] >> (i & 7)) & 1 ? scale : T(0));
}

template <class U, class T = WideOf<U>> static void dropout_backward(const U *g, const uint8_t *bits, U *o, long n, T scale) {
    parallel_for(n, kGrain, [=](long begin, long end) {
        if constexpr (kPlain<U>) {
            scale_by_bits(g, bits, o, begin, end, scale);
        } else {
            alignas(64) T wide[kAtOnce];
            for (long at = begin; at < end; at += kAtOnce) {
                const long some = std::min(kAtOnce, end - at);
                widen(g + at, wide, some);
                scale_by_bits(wide, bits + at / 8, wide, 0, some, scale);
                narrow(wide, o + at, some);
            }
        }
    });
}

template <class U>
static Entropy<U> entropy(Call &call, Array *x, Array *t, Array *w, long O, long C, long I, long ignore, double smoothing) {
    using T = WideOf<U>;
    return {call.in<U>("logits", x, O, C, I), call.maybe_in<T>("weight", w, C), call.in<int64_t>("target", t, O * I), O * I, C, I,
            ignore, (T)smoothing, (T)C};
}

template <class U> static void add_weights(Entropy<U> &k) {
    if (!k.w) return;
    k.weight_sum = 0;
    if (k.smoothing == 0) return;  // then other classes' weights, which may be infinite, have no part in a row
    for (long c = 0; c < k.C; ++c) k.weight_sum += k.w[c];
}

}  // namespace rl

#define ALL(U, S)                                                                                              \
    RL_EXPORT long rl_cross_entropy_##S(Array *x, Array *t, Array *w, Array *loss_, Array *denominator_, Array *sums_, \
                                        long O, long C, long I, long ignore, double smoothing) {               \
        rl::Call call("cross_entropy");                                                                        \
        using T = rl::WideOf<U>;                                                                               \
        rl::Entropy<U> k = rl::entropy<U>(call, x, t, w, O, C, I, ignore, smoothing);                          \
        T *loss = call.out<T>("loss", loss_, k.R), *denominator = call.out<T>("denominator", denominator_, k.R, 2);                       \
        double *sums = call.out<double>("sums", sums_, 2);                                                     \
        long outside = -1;                                                                                     \
        call.run([&] {                                                                                         \
            outside = rl::first_outside(k.target, k.R, C, ignore);                                             \
            if (outside >= 0) return;                                                                          \
            rl::add_weights(k);                                                                                \
            rl::cross_entropy<U>(k, loss, denominator);                                                                \
            k.sums(loss, sums);                                                                                \
        });                                                                                                    \
        return outside;                                                                                        \
    }                                                                                                          \
    RL_EXPORT long rl_cross_entropy_backward_##S(Array *g_, Array *x, Array *denominator_, Array *t, Array *w,         \
                                                 Array *o_, long O, long C, long I, long every, long ignore,   \
                                                 double smoothing) {                                           \
        rl::Call call("cross_entropy_backward");                                                               \
        using T = rl::WideOf<U>;                                                                               \
        rl::Entropy<U> k = rl::entropy<U>(call, x, t, w, O, C, I, ignore, smoothing);                          \
        const T *g = call.in<T>("gradient", g_, every ? k.R : 1), *denominator = call.in<T>("denominator", denominator_, k.R, 2);        \
        U *o = call.out<U>("out", o_, O, C, I);                                                                \
        long outside = -1;                                                                                     \
        call.run([&] {                                                                                         \
            outside = rl::first_outside(k.target, k.R, C, ignore);                                             \
            if (outside >= 0) return;                                                                          \
            rl::add_weights(k);                                                                                \
            rl::cross_entropy_backward<U>(k, g, every ? 1 : 0, denominator, o);                                        \
        });                                                                                                    \
        return outside;                                                                                        \
    }                                                                                                          \
    RL_EXPORT void rl_dropout_backward_##S(Array *g_, Array *bits_, Array *o_, long n, double scale) {         \
        rl::Call call("dropout_backward");                                                                     \
        const U *g = call.in<U>("gradient", g_, n);                                                            \
        const uint8_t *bits = call.in<uint8_t>("bits", bits_, (n + 7) / 8);                                    \
        U *o = call.out<U>("out", o_, n);                                                                      \
        call.run([=] { rl::dropout_backward<U>(g, bits, o, n, (rl::WideOf<U>)scale); });                                  \
    }
RL_ALL(ALL)
