// Attention of bfloat16, one head of one batch element at a time on one thread: products by an engine (pairs.h), sums and softmax
// in float32.  Probabilities, and the slopes of scores, are rounded where they are factors.
#pragma once
#include "attention.h"
#include "pairs.h"

namespace rl {

template <class Engine> struct PairsHead {
    using Number = uint16_t;
    const Operands<Number, float> &n;
    Place<const Number> q, k, v;
    Mask<float> mask;
    long pitch, wide;  // of a block of scores, and of what is as wide as a head

    static long tall(long rows) { return up_to(rows, Engine::kStrip); }
    static long across(long columns) { return up_to(columns, Engine::kPanel); }

    PairsHead(const Operands<Number, float> &n, long b, long h)
        : n(n), q(n.q.at(b, h)), k(n.k.at(b, h)), v(n.v.at(b, h)), mask(n.mask.of(b, h)), pitch(across(n.S)),
          wide(across(std::max(n.E, n.V))) {}

    // Rows (count, width) whose sum over the width, or over the rows themselves, a product makes.
    static Vectors over_width(const Number *data, long row, long count, long width) { return {data, row, count, width, false}; }
    static Vectors over_rows(const Number *data, long row, long count, long width) { return {data, row, width, count, true}; }

    // A factor packed: room in a slot of this thread.
    template <int kSlot> static const uint32_t *panels(Vectors x) {
        uint32_t *to = scratch<uint32_t, kSlot>(across(x.count) * Engine::pairs(x.steps));
        pack_panels<Engine>(x, to);
        return to;
    }
    template <int kSlot> static const uint32_t *strips(Vectors x) {
        uint32_t *to = scratch<uint32_t, kSlot>(tall(x.count) * Engine::pairs(x.steps));
        pack_strips<Engine>(x, to);
        return to;
    }

    // out (rows, columns) = or += strips times panels, over the first `steps` of `deep`.
    static void multiply(const uint32_t *left, long left_steps, long rows, const uint32_t *right, long right_steps, long steps,
                         long columns, float *out, long pitch, bool add) {
        const long left_deep = Engine::pairs(left_steps), deep = Engine::pairs(right_steps), pairs = Engine::pairs(steps);
        for (long c = 0; c < columns; c += Engine::kPanel)
            multiply_panel<Engine>(left, left_deep, rows, right + c * deep, pairs, columns - c, out + c, pitch, add);
    }

    // Scores of a block of rows; 0 right of the diagonal.
    void scores(float *s, const uint32_t *kt, long first, long rows, long columns) const {
        multiply(strips<0>(over_width(q.from(first), q.row, rows, n.E)), n.E, rows, kt, n.E, n.E, columns, s, pitch, false);
        for (long r = 0; r < rows; ++r)
            for (long i = n.seen(first + r, columns); i < columns; ++i) s[r * pitch + i] = 0;
    }

    // A block of float32 (rows, columns), rounded, in rows of `pitch`.
    template <int kSlot> const Number *narrow(const float *s, long rows, long columns) const {
        Number *to = scratch<Number, kSlot>(kBlock * pitch);
        store(s, pitch, rows, columns, to, pitch);
        return to;
    }

    void forward(Place<Number> out, float *lse) const {
        typename Engine::Ready ready;
        const uint32_t *kt = panels<1>(over_width(k.data, k.row, n.S, n.E)), *vp = panels<2>(over_rows(v.data, v.row, n.S, n.V));
        float *s = scratch<float, 2>(tall(kBlock) * pitch), *o = scratch<float, 3>(tall(kBlock) * wide);
        for (long first = 0; first < n.L; first += kBlock) {
            const long rows = std::min(kBlock, n.L - first), some = n.columns(first, rows);
            scores(s, kt, first, rows, some);
            for (long r = 0; r < rows; ++r) {
                const long count = n.seen(first + r, some);
                mask.add(s + r * pitch, 0, first + r, count, n.scale);
                lse[first + r] = exp_row(s + r * pitch, count, up_to(count, kLanes<float>));
            }
            const uint32_t *p = strips<0>(over_width(narrow<0>(s, rows, some), pitch, rows, some));
            multiply(p, some, rows, vp, n.S, some, n.V, o, wide, false);
            store(o, wide, rows, n.V, out.from(first), out.row);
        }
    }

    void backward(Place<const Number> g, const float *lse, Place<Number> gq, Place<Number> gk, Place<Number> gv) const {
        typename Engine::Ready ready;
        const uint32_t *kt = panels<1>(over_width(k.data, k.row, n.S, n.E)), *vt = panels<2>(over_width(v.data, v.row, n.S, n.V));
        const uint32_t *kp = panels<3>(over_rows(k.data, k.row, n.S, n.E));
        float *s = scratch<float, 2>(tall(kBlock) * pitch), *d = scratch<float, 4>(tall(kBlock) * pitch);
        float *o = scratch<float, 3>(tall(kBlock) * wide);
        float *dk = scratch<float, 5>(tall(n.S) * wide), *dv = scratch<float, 6>(tall(n.S) * wide);
        std::memset(dk, 0, tall(n.S) * wide * sizeof(float));
        std::memset(dv, 0, tall(n.S) * wide * sizeof(float));
        for (long first = 0; first < n.L; first += kBlock) {
            const long rows = std::min(kBlock, n.L - first), some = n.columns(first, rows);
            scores(s, kt, first, rows, some);
            multiply(strips<0>(over_width(g.from(first), g.row, rows, n.V)), n.V, rows, vt, n.V, n.V, some, d, pitch, false);
            for (long r = 0; r < rows; ++r) {
                const long count = n.seen(first + r, some);
                mask.add(s + r * pitch, 0, first + r, count, n.scale);
                slope_row(s + r * pitch, d + r * pitch, lse[first + r], count, up_to(count, kLanes<float>), some, n.scale);
            }
            const Number *p = narrow<0>(s, rows, some), *slopes = narrow<1>(d, rows, some);
            multiply(strips<0>(over_width(slopes, pitch, rows, some)), some, rows, kp, n.S, some, n.E, o, wide, false);
            store(o, wide, rows, n.E, gq.from(first), gq.row);
            gather(p, rows, some, g.from(first), g.row, n.V, dv);
            gather(slopes, rows, some, q.from(first), q.row, n.E, dk);
        }
        store(dk, wide, n.S, n.E, gk.data, gk.row);
        store(dv, wide, n.S, n.V, gv.data, gv.row);
    }

    // to (columns, width) += block^T times rows.
    void gather(const Number *block, long rows, long columns, const Number *right, long row, long width, float *to) const {
        const uint32_t *left = strips<0>(over_rows(block, pitch, rows, columns));
        multiply(left, rows, columns, panels<4>(over_rows(right, row, rows, width)), rows, rows, width, to, wide, true);
    }
};

template <class Engine>
void attend_all(Array *q, Array *k, Array *v, Array *mask, Array *out_, Array *lse_, int causal, double scale) {
    Call call("attention");
    Operands<uint16_t, float> n(call, q, k, v, mask, causal, scale);
    Place<uint16_t> out = call.rows<uint16_t>("out", out_, n.B, n.H, n.L, n.V);
    float *lse = call.out<float>("lse", lse_, n.B, n.H, n.L);
    call.run([=, &n] {
        n.each_head([=, &n](long b, long h) { PairsHead<Engine>(n, b, h).forward(out.at(b, h), lse + (b * n.H + h) * n.L); });
    });
}

template <class Engine>
void attend_backward_all(Array *g_, Array *q, Array *k, Array *v, Array *mask, Array *lse_, Array *gq_, Array *gk_, Array *gv_,
                     int causal, double scale) {
    Call call("attention_backward");
    Operands<uint16_t, float> n(call, q, k, v, mask, causal, scale);
    Place<const uint16_t> g = call.rows<const uint16_t>("gradient", g_, n.B, n.H, n.L, n.V);
    const float *lse = call.in<float>("lse", lse_, n.B, n.H, n.L);
    Place<uint16_t> gq = call.rows<uint16_t>("query's", gq_, n.B, n.H, n.L, n.E);
    Place<uint16_t> gk = call.rows<uint16_t>("key's", gk_, n.B, n.H, n.S, n.E);
    Place<uint16_t> gv = call.rows<uint16_t>("value's", gv_, n.B, n.H, n.S, n.V);
    call.run([=, &n] {
        n.each_head([=, &n](long b, long h) {
            PairsHead<Engine>(n, b, h).backward(g.at(b, h), lse + (b * n.H + h) * n.L, gq.at(b, h), gk.at(b, h), gv.at(b, h));
        });
    });
}

}  // namespace rl

// What an engine exports.  Arguments: see `multiply_all`; `attention` as of float32.
#define RL_PAIRS(ENGINE, SUFFIX)                                                                                                \
    RL_EXPORT void rl_product##SUFFIX(Array *a, Array *b, Array *row, Array *more, Array *out, Array *packed, long some,       \
                                      int a_turned, int b_turned, long batch, long rows, long steps, long columns, double alpha,             \
                                      double beta) {                                                                           \
        rl::multiply_all<ENGINE>("product", a, b, row, more, out, packed, some, a_turned, b_turned, batch, rows, steps,        \
                                 columns, alpha, beta);                                                                        \
    }                                                                                                                          \
    RL_EXPORT void rl_product_wide##SUFFIX(Array *a, Array *b, Array *row, Array *more, Array *out, Array *packed, long some,    \
                                           int a_turned, int b_turned, long batch, long rows, long steps, long columns,          \
                                           double alpha, double beta) {                                                          \
        rl::multiply_all<ENGINE, float>("product", a, b, row, more, out, packed, some, a_turned, b_turned, batch, rows, steps,    \
                                        columns, alpha, beta);                                                                    \
    }                                                                                                                          \
    RL_EXPORT void rl_attention##SUFFIX(Array *q, Array *k, Array *v, Array *mask, Array *out, Array *lse, int causal,         \
                                        double scale) {                                                                        \
        rl::attend_all<ENGINE>(q, k, v, mask, out, lse, causal, scale);                                                        \
    }                                                                                                                          \
    RL_EXPORT void rl_attention_backward##SUFFIX(Array *g, Array *q, Array *k, Array *v, Array *mask, Array *lse, Array *gq,   \
                                                 Array *gk, Array *gv, int causal, double scale) {                             \
        rl::attend_backward_all<ENGINE>(g, q, k, v, mask, lse, gq, gk, gv, causal, scale);                                     \
    }
