// Attention whole, one head of one batch element at a time on one thread: a block of rows of scores, its softmax and
// what follows from it stay in the second-level cache, and columns that a causal mask hides are not computed.
#include "attention.h"
#include "gemm.h"

namespace rl {
namespace {

constexpr long kBlock = 64;  // rows of scores at once

RL_INLINE long up_to(long n, long unit) { return (n + unit - 1) / unit * unit; }

template <class T> RL_INLINE long panels(long columns) { return (columns + kWide<T> - 1) / kWide<T>; }

// Rows (count, width) as panels of kWide columns: (panel, count, kWide), columns past the last are 0.
template <class T> static void pack(const T *from, long count, long width, long row, T *to) {
    for (long c = 0; c < width; c += kWide<T>) {
        long some = width - c < kWide<T> ? width - c : kWide<T>;
        for (long i = 0; i < count; ++i, to += kWide<T>) {
            for (long j = 0; j < some; ++j) to[j] = from[i * row + c + j];
            for (long j = some; j < kWide<T>; ++j) to[j] = 0;
        }
    }
}

// The transpose of rows (count, width) as panels: (panel, width, kWide).
template <class T> static void pack_transposed(const T *from, long count, long width, long row, T *to) {
    for (long c = 0; c < count; c += kWide<T>, to += width * kWide<T>) {
        long some = count - c < kWide<T> ? count - c : kWide<T>;
        for (long j = 0; j < some; ++j)
            for (long e = 0; e < width; ++e) to[e * kWide<T> + j] = from[(c + j) * row + e];
        for (long j = some; j < kWide<T>; ++j)
            for (long e = 0; e < width; ++e) to[e * kWide<T> + j] = 0;
    }
}

// The transpose of a block (rows, columns) as strips of kRows columns: (strip, rows, kRows).
template <class T> static void pack_strips(const T *from, long rows, long columns, long pitch, T *to) {
    for (long c = 0; c < columns; c += kRows)
        for (long r = 0; r < rows; ++r, to += kRows)
            for (int i = 0; i < kRows; ++i) to[i] = from[r * pitch + c + i];
}

// out (count, columns) = rows of `a` (steps each) times panels that are `depth` steps deep.
template <class T>
static void multiply(const T *a, long lda, long count, const T *b, long depth, long steps, long columns, T *out,
                     long pitch) {
    for (long p = 0; p * kWide<T> < columns; ++p)
        for (long i = 0; i < count; i += kRows) {
            Rows<T> rows(a, lda, i, count);
            product<T, false>(rows.at, b + p * depth * kWide<T>, steps, columns - p * kWide<T>,
                              out + i * pitch + p * kWide<T>, pitch, false);
        }
}

// out (columns of the block, width) += strips (strip, steps, kRows) times panels (panel, steps, kWide).
template <class T>
static void add_products(const T *strips, long columns, const T *b, long steps, long width, T *out, long pitch) {
    for (long p = 0; p * kWide<T> < width; ++p)
        for (long i = 0; i < columns; i += kRows) {
            const T *strip = strips + i * steps;
            product<T, true>(&strip, b + p * steps * kWide<T>, steps, width - p * kWide<T>,
                             out + i * pitch + p * kWide<T>, pitch, true);
        }
}

template <class T> static void store(const T *from, long pitch, long count, long width, T *to, long row) {
    for (long i = 0; i < count; ++i) std::memcpy(to + i * row, from + i * pitch, width * sizeof(T));
}

struct Place {  // strides in elements; rows are gapless
    int64_t batch, head, row;
};

struct Layout {  // as `kernels.attention` fills it
    int64_t B, H, L, S, E, V, causal, kind;
    Place q, k, v, out, mask, g, gq, gk, gv;
};

template <class T> RL_INLINE T *at(T *data, Place place, long b, long h) {
    return data + b * place.batch + h * place.head;
}

template <class T> struct Head {
    const Layout &n;
    const T *q, *k, *v;
    Mask<T> mask;
    T *lse, scale;
    long wide, pitch, out_pitch;

    Head(const Layout &n, const T *q, const T *k, const T *v, const void *masks, T *lse, T scale, long b, long h)
        : n(n), q(at(q, n.q, b, h)), k(at(k, n.k, b, h)), v(at(v, n.v, b, h)),
          mask{masks, (int)n.kind, 0, n.mask.row}, lse(lse + (b * n.H + h) * n.L), scale(scale),
          wide(n.E > n.V ? n.E : n.V), pitch(up_to(n.S, kWide<T>)), out_pitch(up_to(wide, kWide<T>)) {
        long offset = b * n.mask.batch + h * n.mask.head;
        if (n.kind == 1) mask.data = static_cast<const T *>(masks) + offset;
        if (n.kind == 2) mask.data = static_cast<const uint8_t *>(masks) + offset;
    }

    long columns(long first, long rows) const { return n.causal && first + rows < n.S ? first + rows : n.S; }

    long seen(long row, long columns) const { return n.causal && row + 1 < columns ? row + 1 : columns; }

    // Scores of a block of rows as q k^T leaves them; 0 right of the diagonal and in the last strip's spare columns.
    void scores(T *s, const T *kt, long first, long rows, long columns) const {
        multiply(q + first * n.q.row, n.q.row, rows, kt, n.E, n.E, columns, s, pitch);
        for (long r = 0; r < rows; ++r)
            for (long i = seen(first + r, columns); i < up_to(columns, kRows); ++i) s[r * pitch + i] = 0;
    }

    void forward(T *out) const {
        T *kt = scratch<T, 0>(panels<T>(n.S) * kWide<T> * n.E), *vp = scratch<T, 1>(panels<T>(n.V) * kWide<T> * n.S);
        T *s = scratch<T, 2>(kBlock * pitch), *o = scratch<T, 3>(kBlock * out_pitch);
        pack_transposed(k, n.S, n.E, n.k.row, kt);
        pack(v, n.S, n.V, n.v.row, vp);
        for (long first = 0; first < n.L; first += kBlock) {
            long rows = n.L - first < kBlock ? n.L - first : kBlock, some = columns(first, rows);
            scores(s, kt, first, rows, some);
            for (long r = 0; r < rows; ++r) {
                long count = seen(first + r, some);
                mask.add(s + r * pitch, 0, first + r, count, scale);
                lse[first + r] = exp_row(s + r * pitch, count);
            }
            multiply(s, pitch, rows, vp, n.S, some, n.V, o, out_pitch);
            store(o, out_pitch, rows, n.V, out + first * n.out.row, n.out.row);
        }
    }

    // One row of the scores' gradient: p * (d - sum(g * out)) * scale, in place of d; p anew from its score.
    void slope(T *p, T *d, const T *g, const T *out, long row, long columns) const {
        long count = seen(row, columns);
        mask.add(p, 0, row, count, scale);
        T l = lse[row] == -infinity<T>() ? infinity<T>() : lse[row], delta = 0;
#pragma omp simd reduction(+ : delta)
        for (long e = 0; e < n.V; ++e) delta += g[e] * out[e];
#pragma omp simd
        for (long i = 0; i < count; ++i) {
            p[i] = rl::exp(p[i] - l);
            d[i] = p[i] * (d[i] - delta) * scale;
        }
        for (long i = count; i < up_to(columns, kRows); ++i) d[i] = 0;
    }

    void backward(const T *g, const T *out, T *gq, T *gk, T *gv) const {
        long across = panels<T>(n.S) * kWide<T>, keys = up_to(n.S, kRows);
        T *kt = scratch<T, 0>(across * n.E), *vt = scratch<T, 1>(across * n.V);
        T *s = scratch<T, 2>(kBlock * pitch), *d = scratch<T, 3>(kBlock * pitch);
        T *kp = scratch<T, 4>(n.S * out_pitch), *strips = scratch<T, 5>(kBlock * (pitch + kRows));
        T *panel = scratch<T, 6>(kBlock * out_pitch), *o = scratch<T, 7>(kBlock * out_pitch);
        T *dk = scratch<T, 8>(keys * out_pitch), *dv = scratch<T, 9>(keys * out_pitch);
        pack_transposed(k, n.S, n.E, n.k.row, kt);
        pack_transposed(v, n.S, n.V, n.v.row, vt);
        pack(k, n.S, n.E, n.k.row, kp);
        std::memset(dk, 0, keys * out_pitch * sizeof(T));
        std::memset(dv, 0, keys * out_pitch * sizeof(T));
        for (long first = 0; first < n.L; first += kBlock) {
            long rows = n.L - first < kBlock ? n.L - first : kBlock, some = columns(first, rows);
            const T *g0 = g + first * n.g.row, *out0 = out + first * n.out.row, *q0 = q + first * n.q.row;
            scores(s, kt, first, rows, some);
            multiply(g0, n.g.row, rows, vt, n.V, n.V, some, d, pitch);
            for (long r = 0; r < rows; ++r)
                slope(s + r * pitch, d + r * pitch, g0 + r * n.g.row, out0 + r * n.out.row, first + r, some);
            multiply(d, pitch, rows, kp, n.S, some, n.E, o, out_pitch);
            store(o, out_pitch, rows, n.E, gq + first * n.gq.row, n.gq.row);
            gather(s, rows, some, g0, n.V, n.g.row, strips, panel, dv);
            gather(d, rows, some, q0, n.E, n.q.row, strips, panel, dk);
        }
        store(dk, out_pitch, n.S, n.E, gk, n.gk.row);
        store(dv, out_pitch, n.S, n.V, gv, n.gv.row);
    }

    // to (columns, width) += block^T times rows
    void gather(const T *block, long rows, long columns, const T *right, long width, long row, T *strips, T *panel,
                T *to) const {
        pack_strips(block, rows, columns, pitch, strips);
        pack(right, rows, width, row, panel);
        add_products(strips, columns, panel, rows, width, to, out_pitch);
    }
};

}  // namespace
}  // namespace rl

#define ALL(T, S)                                                                                              \
    RL_EXPORT void rl_attention_##S(Array *q, Array *k, Array *v, Array *mask, Array *out, Array *lse,         \
                                    Array *layout, double scale) {                                             \
        const rl::Layout &n = *ptr<rl::Layout>(layout);                                                        \
        const T *q_ = ptr<T>(q), *k_ = ptr<T>(k), *v_ = ptr<T>(v);                                             \
        T *o = ptr<T>(out), *l = ptr<T>(lse);                                                                  \
        const void *m = ptr<void>(mask);                                                                       \
        rl::parallel_for(n.B * n.H, 1, [=, &n](long begin, long end) {                                         \
            for (long t = begin; t < end; ++t)                                                                 \
                rl::Head<T>(n, q_, k_, v_, m, l, (T)scale, t / n.H, t % n.H)                                   \
                    .forward(rl::at(o, n.out, t / n.H, t % n.H));                                              \
        });                                                                                                    \
    }                                                                                                          \
    RL_EXPORT void rl_attention_backward_##S(Array *g, Array *q, Array *k, Array *v, Array *mask, Array *out,  \
                                             Array *lse, Array *gq, Array *gk, Array *gv, Array *layout,       \
                                             double scale) {                                                   \
        const rl::Layout &n = *ptr<rl::Layout>(layout);                                                        \
        const T *g_ = ptr<T>(g), *q_ = ptr<T>(q), *k_ = ptr<T>(k), *v_ = ptr<T>(v), *o = ptr<T>(out);          \
        T *l = ptr<T>(lse), *dq = ptr<T>(gq), *dk = ptr<T>(gk), *dv = ptr<T>(gv);                              \
        const void *m = ptr<void>(mask);                                                                       \
        rl::parallel_for(n.B * n.H, 1, [=, &n](long begin, long end) {                                         \
            for (long t = begin; t < end; ++t) {                                                               \
                long b = t / n.H, h = t % n.H;                                                                 \
                rl::Head<T>(n, q_, k_, v_, m, l, (T)scale, b, h)                                               \
                    .backward(rl::at(g_, n.g, b, h), rl::at(o, n.out, b, h), rl::at(dq, n.gq, b, h),           \
                              rl::at(dk, n.gk, b, h), rl::at(dv, n.gv, b, h));                                 \
            }                                                                                                  \
        });                                                                                                    \
    }
RL_BOTH(ALL)
