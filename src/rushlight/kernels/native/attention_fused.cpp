// Attention whole, one head of one batch element at a time on one thread: a block of rows of scores, its softmax and
// what follows from it stay in the second-level cache, and columns that a causal mask hides are not computed.
#include "attention.h"
#include "squares.h"

namespace rl {
namespace {

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
    constexpr long N = kLanes<T>;
    for (long c = 0; c < count; c += kWide<T>, to += width * kWide<T>) {
        const long some = count - c < kWide<T> ? count - c : kWide<T>, whole = some / N * N, far = width / N * N;
        for (long j = 0; j < whole; j += N) {
            for (long e = 0; e < far; e += N) square<T, N>(from + (c + j) * row + e, row, to + e * kWide<T> + j, kWide<T>);
            for (long e = far; e < width; ++e)
                for (long i = j; i < j + N; ++i) to[e * kWide<T> + i] = from[(c + i) * row + e];
        }
        for (long j = whole; j < some; ++j)
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
            product<T, kByRows>(rows.at, b + p * depth * kWide<T>, steps, columns - p * kWide<T>,
                              out + i * pitch + p * kWide<T>, pitch, false);
        }
}

// out (columns of the block, width) += strips (strip, steps, kRows) times panels (panel, steps, kWide).
template <class T>
static void add_products(const T *strips, long columns, const T *b, long steps, long width, T *out, long pitch) {
    for (long p = 0; p * kWide<T> < width; ++p)
        for (long i = 0; i < columns; i += kRows) {
            const T *strip = strips + i * steps;
            product<T, kByPanels>(&strip, b + p * steps * kWide<T>, steps, width - p * kWide<T>,
                             out + i * pitch + p * kWide<T>, pitch, true);
        }
}

template <class T> static void store(const T *from, long pitch, long count, long width, T *to, long row) {
    for (long i = 0; i < count; ++i) std::memcpy(to + i * row, from + i * pitch, width * sizeof(T));
}

template <class T> struct Head {
    const Operands<T> &n;
    Place<const T> q, k, v;
    Mask<T> mask;
    T scale;
    long wide, pitch, out_pitch;

    Head(const Operands<T> &n, long b, long h)
        : n(n), q(n.q.at(b, h)), k(n.k.at(b, h)), v(n.v.at(b, h)), mask(n.mask.of(b, h)), scale(n.scale),
          wide(n.E > n.V ? n.E : n.V), pitch(up_to(n.S, kWide<T>)), out_pitch(up_to(wide, kWide<T>)) {}

    // Scores of a block of rows as q k^T leaves them; 0 right of the diagonal and in the last strip's spare columns.
    void scores(T *s, const T *kt, long first, long rows, long columns) const {
        multiply(q.from(first), q.row, rows, kt, n.E, n.E, columns, s, pitch);
        for (long r = 0; r < rows; ++r)
            for (long i = n.seen(first + r, columns); i < up_to(columns, kRows); ++i) s[r * pitch + i] = 0;
    }

    void forward(Place<T> out, T *lse) const {
        T *kt = scratch<T, 0>(panels<T>(n.S) * kWide<T> * n.E), *vp = scratch<T, 1>(panels<T>(n.V) * kWide<T> * n.S);
        T *s = scratch<T, 2>(kBlock * pitch), *o = scratch<T, 3>(kBlock * out_pitch);
        pack_transposed(k.data, n.S, n.E, k.row, kt);
        pack(v.data, n.S, n.V, v.row, vp);
        for (long first = 0; first < n.L; first += kBlock) {
            long rows = n.L - first < kBlock ? n.L - first : kBlock, some = n.columns(first, rows);
            scores(s, kt, first, rows, some);
            for (long r = 0; r < rows; ++r) {
                long count = n.seen(first + r, some);
                mask.add(s + r * pitch, 0, first + r, count, scale);
                lse[first + r] = exp_row(s + r * pitch, count, up_to(count, kLanes<T>));
            }
            multiply(s, pitch, rows, vp, n.S, some, n.V, o, out_pitch);
            store(o, out_pitch, rows, n.V, out.from(first), out.row);
        }
    }

    void backward(Place<const T> g, const T *lse, Place<T> gq, Place<T> gk, Place<T> gv) const {
        long across = panels<T>(n.S) * kWide<T>, keys = up_to(n.S, kRows);
        T *kt = scratch<T, 0>(across * n.E), *vt = scratch<T, 1>(across * n.V);
        T *s = scratch<T, 2>(kBlock * pitch), *d = scratch<T, 3>(kBlock * pitch);
        T *kp = scratch<T, 4>(n.S * out_pitch), *strips = scratch<T, 5>(kBlock * (pitch + kRows));
        T *panel = scratch<T, 6>(kBlock * out_pitch), *o = scratch<T, 7>(kBlock * out_pitch);
        T *dk = scratch<T, 8>(keys * out_pitch), *dv = scratch<T, 9>(keys * out_pitch);
        pack_transposed(k.data, n.S, n.E, k.row, kt);
        pack_transposed(v.data, n.S, n.V, v.row, vt);
        pack(k.data, n.S, n.E, k.row, kp);
        std::memset(dk, 0, keys * out_pitch * sizeof(T));
        std::memset(dv, 0, keys * out_pitch * sizeof(T));
        for (long first = 0; first < n.L; first += kBlock) {
            long rows = n.L - first < kBlock ? n.L - first : kBlock, some = n.columns(first, rows);
            scores(s, kt, first, rows, some);
            multiply(g.from(first), g.row, rows, vt, n.V, n.V, some, d, pitch);
            for (long r = 0; r < rows; ++r) {
                long count = n.seen(first + r, some);
                mask.add(s + r * pitch, 0, first + r, count, scale);
                slope_row(s + r * pitch, d + r * pitch, lse[first + r], count, up_to(count, kLanes<T>), up_to(some, kRows), scale);
            }
            multiply(d, pitch, rows, kp, n.S, some, n.E, o, out_pitch);
            store(o, out_pitch, rows, n.E, gq.from(first), gq.row);
            gather(s, rows, some, g.from(first), n.V, g.row, strips, panel, dv);
            gather(d, rows, some, q.from(first), n.E, q.row, strips, panel, dk);
        }
        store(dk, out_pitch, n.S, n.E, gk.data, gk.row);
        store(dv, out_pitch, n.S, n.V, gv.data, gv.row);
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

#define ALL(T, S_)                                                                                             \
    RL_EXPORT void rl_attention_##S_(Array *q, Array *k, Array *v, Array *mask, Array *out_, Array *lse_,      \
                                     int causal, double scale) {                                               \
        rl::Call call("attention");                                                                            \
        rl::Operands<T> n(call, q, k, v, mask, causal, scale);                                                 \
        rl::Place<T> out = call.rows<T>("out", out_, n.B, n.H, n.L, n.V);                                      \
        T *lse = call.out<T>("lse", lse_, n.B, n.H, n.L);                                                      \
        call.run([=, &n] {                                                                                     \
            n.each_head([=, &n](long b, long h) {                                                              \
                rl::Head<T>(n, b, h).forward(out.at(b, h), lse + (b * n.H + h) * n.L);                         \
            });                                                                                                \
        });                                                                                                    \
    }                                                                                                          \
    RL_EXPORT void rl_attention_backward_##S_(Array *g_, Array *q, Array *k, Array *v, Array *mask,            \
                                              Array *lse_, Array *gq_, Array *gk_, Array *gv_, int causal,     \
                                              double scale) {                                                  \
        rl::Call call("attention_backward");                                                                   \
        rl::Operands<T> n(call, q, k, v, mask, causal, scale);                                                 \
        rl::Place<const T> g = call.rows<const T>("gradient", g_, n.B, n.H, n.L, n.V);                         \
        const T *lse = call.in<T>("lse", lse_, n.B, n.H, n.L);                                                 \
        rl::Place<T> gq = call.rows<T>("query's", gq_, n.B, n.H, n.L, n.E);                                    \
        rl::Place<T> gk = call.rows<T>("key's", gk_, n.B, n.H, n.S, n.E);                                      \
        rl::Place<T> gv = call.rows<T>("value's", gv_, n.B, n.H, n.S, n.V);                                    \
        call.run([=, &n] {                                                                                     \
            n.each_head([=, &n](long b, long h) {                                                              \
                rl::Head<T>(n, b, h).backward(g.at(b, h), lse + (b * n.H + h) * n.L, gq.at(b, h), gk.at(b, h), \
                                              gv.at(b, h));                                                    \
            });                                                                                                \
        });                                                                                                    \
    }
RL_BOTH(ALL)
