// Recurrent layers, a whole sequence in one direction at a time, forward and backward.
//
// A step multiplies the states of its rows by the state's weight, and computes its gates from that.  Blocks of hidden units
// go to the threads: a block's columns of the weight, packed before the first step, stay in the cache of a core, and its
// gates are computed while the products lie in the first-level cache.  Threads meet once a step.
//
// Rows of all steps lie one after the other; steps are pairs (first row, rows) in the order in which they are taken; row r of a
// step goes on from row r of the step before where that has one, else from the first state.
#include <vector>

#include "gemm.h"
#include "vecmath.h"

namespace rl {
namespace {

struct Step {
    int64_t start, rows;
};

// Hidden units in blocks as wide as keeps the threads equally busy.
template <class T> struct Blocks {
    long hidden;
    int vectors = kVectors;
    long width, count;

    explicit Blocks(long hidden) : hidden(hidden) {
        long least = -1;
        for (int v = kVectors; v > 0; --v) {
            long pieces = (hidden + v * kLanes<T> - 1) / (v * kLanes<T>);
            long turns = (pieces + threads() - 1) / threads() * v;
            if (least < 0 || turns < least) least = turns, vectors = v;
        }
        width = vectors * kLanes<T>;
        count = (hidden + width - 1) / width;
    }
    long units(long block) const { return std::min(width, hidden - block * width); }
    // Blocks that are worth a thread, if each takes so many products.
    long grain(long products) const { return 1 + (16 * kGrain) / (products < 1 ? 1 : products); }

    // found (rows, width), a row every `pitch`, = rows of `depth` numbers each times a panel (depth, width).
    void multiply(const T *const *rows, long count, const T *panel, long depth, T *found, long pitch) const {
        for (long r = 0; r < count; r += kRows) {
            if (vectors == 3) some<3>(rows + r, count - r, panel, depth, found + r * pitch, pitch);
            else if (vectors == 2) some<2>(rows + r, count - r, panel, depth, found + r * pitch, pitch);
            else some<1>(rows + r, count - r, panel, depth, found + r * pitch, pitch);
        }
    }

  private:
    template <int NV>
    static void some(const T *const *rows, long count, const T *panel, long depth, T *found, long pitch) {
        constexpr int W = NV * kLanes<T>;
        if (count > 4) tile<T, NV, kByRows, W>(rows, panel, depth, found, pitch, false);
        else if (count > 1) tile<T, NV, kByRows, W, 4>(rows, panel, depth, found, pitch, false);
        else tile<T, NV, kByRows, W, 1>(rows, panel, depth, found, pitch, false);
    }
};

// Panels (block, gate, hidden, width) of the transpose of w (gates * hidden, hidden): what a state is multiplied by.
template <class T> void pack_forward(const Blocks<T> &blocks, long gates, const T *w, T *to) {
    const long hidden = blocks.hidden, width = blocks.width;
    parallel_for(blocks.count, blocks.grain(gates * hidden * width), [=](long begin, long end) {
        for (long p = begin * gates; p < end * gates; ++p) {
            long first = p / gates * width, some = blocks.units(p / gates);
            const T *from = w + (p % gates * hidden + first) * hidden;
            T *panel = to + p * hidden * width;
            for (long j = 0; j < width; ++j)
                for (long s = 0; s < hidden; ++s) panel[s * width + j] = j < some ? from[j * hidden + s] : T(0);
        }
    });
}

// Panels (block, gates * hidden, width) of w itself: what the gates' gradients are multiplied by.
template <class T> void pack_backward(const Blocks<T> &blocks, long gates, const T *w, T *to) {
    const long hidden = blocks.hidden, width = blocks.width, depth = gates * hidden;
    parallel_for(blocks.count, blocks.grain(depth * width), [=](long begin, long end) {
        for (long b = begin; b < end; ++b)
            for (long s = 0; s < depth; ++s)
                for (long j = 0; j < width; ++j)
                    to[(b * depth + s) * width + j] = j < blocks.units(b) ? w[s * hidden + b * width + j] : T(0);
    });
}

// For each row of a step the row of `states` (total, hidden) that it goes on from, or that of `first` (batch, hidden).
template <class T> struct Before {
    const T *states, *first;
    long hidden;
    const T *row(Step last, long r) const {
        return r < last.rows ? states + (last.start + r) * hidden : first + r * hidden;
    }
};

// Pointers to the rows of a step, and to the last one again up to a whole tile.
template <class T> class Pointers {
    std::vector<const T *> at_;

  public:
    explicit Pointers(long batch) : at_(batch + kRows) {}
    const T *const *get() const { return at_.data(); }
    template <class F> void fill(long rows, F row) {
        for (long r = 0; r < (rows + kRows - 1) / kRows * kRows; ++r) at_[r] = row(std::min(r, rows - 1));
    }
};

inline long whole_tiles(long rows) { return (rows + kRows - 1) / kRows * kRows; }

template <class T, class Cell>
void forward(const Cell &cell, const Step *steps, long count, long batch, long hidden, const T *w, T *packed) {
    constexpr int G = Cell::kGates;
    const Blocks<T> blocks(hidden);
    const long width = blocks.width, pitch = G * width;
    pack_forward(blocks, G, w, packed);
    Pointers<T> before(batch);
    for (long t = 0; t < count; ++t) {
        const Step now = steps[t], last = t ? steps[t - 1] : Step{0, 0};
        before.fill(now.rows, [&](long r) { return cell.before.row(last, r); });
        parallel_for(blocks.count, blocks.grain(now.rows * hidden * pitch), [&](long begin, long end) {
            T *found = scratch<T, 0>(whole_tiles(now.rows) * pitch);
            for (long b = begin; b < end; ++b) {
                for (int g = 0; g < G; ++g)
                    blocks.multiply(before.get(), now.rows, packed + (b * G + g) * hidden * width, hidden, found + g * width, pitch);
                for (long r = 0; r < now.rows; ++r)
                    cell.step(now.start + r, r, b * width, blocks.units(b), found + r * pitch, width, before.get()[r]);
            }
        });
    }
}

// Gradients of the gates, from the last step to the first, and of the first state.
template <class T, class Cell>
void backward(const Cell &cell, const Step *steps, long count, long batch, long hidden, const T *w, T *packed) {
    constexpr int G = Cell::kGates;
    const Blocks<T> blocks(hidden);
    const long width = blocks.width, depth = G * hidden;
    pack_backward(blocks, G, w, packed);
    Pointers<T> gradients(batch);
    for (long t = count - 1; t >= -1; --t) {
        const Step after = t + 1 < count ? steps[t + 1] : Step{0, 0}, now = t < 0 ? Step{0, 0} : steps[t];
        const Step last = t > 0 ? steps[t - 1] : Step{0, 0};
        gradients.fill(after.rows, [&](long r) { return cell.d_gates + (after.start + r) * depth; });
        parallel_for(blocks.count, blocks.grain(after.rows * depth * width), [&](long begin, long end) {
            T *found = scratch<T, 0>(whole_tiles(after.rows) * width);
            for (long b = begin; b < end; ++b) {
                const long first = b * width, units = blocks.units(b);
                blocks.multiply(gradients.get(), after.rows, packed + b * depth * width, depth, found, width);
                for (long r = 0; r < after.rows; ++r) cell.receive(r, first, units, found + r * width);
                for (long r = 0; r < now.rows; ++r) cell.slope(now.start + r, r, first, units, cell.before.row(last, r));
            }
        });
    }
}

// Cells.  `row` counts the rows of all steps, `r` those of one; units [first, first + n) are computed. ------------------------

template <class T> struct Lstm {
    static constexpr int kGates = 4;
    long hidden;
    Before<T> before;  // outputs
    T *gates, *h, *c, *out, *cells;

    void step(long row, long r, long first, long n, const T *found, long width, const T *) const {
        const long H = hidden;
        T *g = gates + row * 4 * H + first, *cell = c + r * H + first, *y = out + row * H + first;
#pragma omp simd
        for (long j = 0; j < n; ++j) {
            T i = rl::sigmoid(g[j] + found[j]), f = rl::sigmoid(g[H + j] + found[width + j]);
            T a = rl::tanh(g[2 * H + j] + found[2 * width + j]), o = rl::sigmoid(g[3 * H + j] + found[3 * width + j]);
            T s = f * cell[j] + i * a;
            g[j] = i, g[H + j] = f, g[2 * H + j] = a, g[3 * H + j] = o;
            cell[j] = s;
            y[j] = o * rl::tanh(s);
        }
        std::memcpy(h + r * H + first, y, n * sizeof(T));
        if (cells) std::memcpy(cells + row * H + first, cell, n * sizeof(T));
    }
};

template <class T> struct LstmSlope {
    static constexpr int kGates = 4;
    long hidden;
    Before<T> before;  // cells
    const T *d_out, *gates, *cells;
    T *dh, *dc, *d_gates;

    void receive(long r, long first, long n, const T *found) const {
        std::memcpy(dh + r * hidden + first, found, n * sizeof(T));
    }
    void slope(long row, long r, long first, long n, const T *c_before) const {
        const long H = hidden;
        const T *g = gates + row * 4 * H + first, *c = cells + row * H + first, *from = d_out + row * H + first;
        const T *from_h = dh + r * H + first, *c_last = c_before + first;
        T *d = d_gates + row * 4 * H + first, *d_cell = dc + r * H + first;
#pragma omp simd
        for (long j = 0; j < n; ++j) {
            T i = g[j], f = g[H + j], a = g[2 * H + j], o = g[3 * H + j];
            T t = rl::tanh(c[j]), d_h = from_h[j] + from[j];
            T d_c = d_cell[j] + d_h * o * (1 - t * t);
            d[j] = d_c * a * i * (1 - i);
            d[H + j] = d_c * c_last[j] * f * (1 - f);
            d[2 * H + j] = d_c * i * (1 - a * a);
            d[3 * H + j] = d_h * t * o * (1 - o);
            d_cell[j] = d_c * f;
        }
    }
};

template <class T> struct Gru {
    static constexpr int kGates = 3;
    long hidden;
    Before<T> before;  // outputs
    const T *bias;
    T *gates, *h, *out, *inner;

    void step(long row, long r, long first, long n, const T *found, long width, const T *h_before) const {
        const long H = hidden;
        const T *b = bias ? bias + first : nullptr, *last = h_before + first;
        T *g = gates + row * 3 * H + first, *y = out + row * H + first;
        T *kept = inner ? inner + row * H + first : y;  // overwritten at once where it is not kept
        for (long j = 0; j < n; ++j) kept[j] = found[2 * width + j] + (b ? b[2 * H + j] : T(0));
#pragma omp simd
        for (long j = 0; j < n; ++j) {
            T reset = rl::sigmoid(g[j] + (found[j] + (b ? b[j] : T(0))));
            T update = rl::sigmoid(g[H + j] + (found[width + j] + (b ? b[H + j] : T(0))));
            T fresh = rl::tanh(g[2 * H + j] + reset * kept[j]);
            g[j] = reset, g[H + j] = update, g[2 * H + j] = fresh;
            y[j] = (last[j] - fresh) * update + fresh;
        }
        std::memcpy(h + r * H + first, y, n * sizeof(T));
    }
};

template <class T> struct GruSlope {
    static constexpr int kGates = 3;
    long hidden;
    Before<T> before;  // outputs
    const T *d_out, *gates, *inner;
    T *dh, *d_gates, *d_new;

    void receive(long r, long first, long n, const T *found) const {
        T *to = dh + r * hidden + first;
#pragma omp simd
        for (long j = 0; j < n; ++j) to[j] += found[j];
    }
    void slope(long row, long r, long first, long n, const T *h_before) const {
        const long H = hidden;
        const T *g = gates + row * 3 * H + first, *p = inner + row * H + first, *from = d_out + row * H + first;
        const T *last = h_before + first;
        T *d = d_gates + row * 3 * H + first, *fresh = d_new + row * H + first, *to = dh + r * H + first;
#pragma omp simd
        for (long j = 0; j < n; ++j) {
            T reset = g[j], update = g[H + j], n_ = g[2 * H + j], d_h = to[j] + from[j];
            T dn = d_h * (1 - update) * (1 - n_ * n_);
            d[j] = dn * p[j] * reset * (1 - reset);
            d[H + j] = d_h * (last[j] - n_) * update * (1 - update);
            d[2 * H + j] = dn * reset;
            fresh[j] = dn;
            to[j] = d_h * update;
        }
    }
};

template <class T> struct Rnn {
    static constexpr int kGates = 1;
    long hidden;
    Before<T> before;  // outputs
    bool relu;
    T *gates, *h;

    void step(long row, long r, long first, long n, const T *found, long, const T *) const {
        T *g = gates + row * hidden + first;
        if (relu)
            for (long j = 0; j < n; ++j) {
                T x = g[j] + found[j];
                g[j] = x < 0 ? T(0) : x;
            }
        else
#pragma omp simd
            for (long j = 0; j < n; ++j) g[j] = rl::tanh(g[j] + found[j]);
        std::memcpy(h + r * hidden + first, g, n * sizeof(T));
    }
};

template <class T> struct RnnSlope {
    static constexpr int kGates = 1;
    long hidden;
    Before<T> before;  // unused
    bool relu;
    const T *d_out, *out;
    T *dh, *d_gates;

    void receive(long r, long first, long n, const T *found) const {
        std::memcpy(dh + r * hidden + first, found, n * sizeof(T));
    }
    void slope(long row, long r, long first, long n, const T *) const {
        const T *y = out + row * hidden + first, *from = d_out + row * hidden + first, *from_h = dh + r * hidden + first;
        T *d = d_gates + row * hidden + first;
#pragma omp simd
        for (long j = 0; j < n; ++j) {
            T d_h = from_h[j] + from[j];
            d[j] = relu ? (y[j] > 0 ? d_h : T(0)) : d_h * (1 - y[j] * y[j]);
        }
    }
};

// One step of an LSTM whose products are made, x (rows, 4 H) of the inputs and s of the states: h, c and `kept` (rows, 5 H),
// the gates and tanh(c), of which `lstm_cell_backward` makes gradients; those that are null are of zeros.
template <class T>
void lstm_cell(const T *x, const T *s, const T *c, T *kept, T *h, T *next, long rows, long hidden) {
    parallel_for(rows, row_grain(8 * hidden), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            const long H = hidden;
            const T *p = x + r * 4 * H, *q = s + r * 4 * H, *cell = c + r * H;
            T *g = kept + r * 5 * H, *to = next + r * H, *y = h + r * H;
#pragma omp simd
            for (long j = 0; j < H; ++j) {
                T i = rl::sigmoid(p[j] + q[j]), f = rl::sigmoid(p[H + j] + q[H + j]);
                T a = rl::tanh(p[2 * H + j] + q[2 * H + j]), o = rl::sigmoid(p[3 * H + j] + q[3 * H + j]);
                T sum = f * cell[j] + i * a, t = rl::tanh(sum);
                g[j] = i, g[H + j] = f, g[2 * H + j] = a, g[3 * H + j] = o, g[4 * H + j] = t;
                to[j] = sum;
                y[j] = o * t;
            }
        }
    });
}

template <class T>
void lstm_cell_backward(const T *d_h, const T *d_next, const T *kept, const T *c, T *d_gates, T *d_c, long rows, long hidden) {
    parallel_for(rows, row_grain(8 * hidden), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            const long H = hidden;
            const T *g = kept + r * 5 * H, *cell = c + r * H;
            const T *from_h = d_h ? d_h + r * H : nullptr, *from_c = d_next ? d_next + r * H : nullptr;
            T *d = d_gates + r * 4 * H, *to = d_c + r * H;
#pragma omp simd
            for (long j = 0; j < H; ++j) {
                T i = g[j], f = g[H + j], a = g[2 * H + j], o = g[3 * H + j], t = g[4 * H + j];
                T of_h = from_h ? from_h[j] : T(0), of_c = (from_c ? from_c[j] : T(0)) + of_h * o * (1 - t * t);
                d[j] = of_c * a * i * (1 - i);
                d[H + j] = of_c * cell[j] * f * (1 - f);
                d[2 * H + j] = of_c * i * (1 - a * a);
                d[3 * H + j] = of_h * t * o * (1 - o);
                to[j] = of_c * f;
            }
        }
    });
}

// The sizes of a layer: rows of all steps, of the first state, hidden units, steps.
struct Sizes {
    long total, batch, hidden, count;
    const Step *steps = nullptr;

    // Takes the steps (count, 2) and shows that each lies among the rows, and has a state to go on from.
    void take(Call &call, const Array *a) {
        const int64_t *pairs = call.in<int64_t>("steps", a, count, 2L);
        bool right = pairs != nullptr;
        for (long t = 0; right && t < count; ++t) {
            const int64_t start = pairs[2 * t], rows = pairs[2 * t + 1];
            right = start >= 0 && rows >= 0 && rows <= batch && start <= total - rows;
        }
        call.expect(right, "steps: rows of the layer");
        steps = reinterpret_cast<const Step *>(pairs);
    }
    // Room for the packed weight.
    template <class T> T *room(Call &call, Array *a, long gates) const {
        return call.out<T>("packed", a, gates, hidden, hidden + 64);
    }
};

}  // namespace
}  // namespace rl

#define LSTM(T, S)                                                                                                       \
    RL_EXPORT void rl_lstm_##S(Array *gates_, Array *steps_, Array *h0_, Array *w_, Array *h_, Array *c_, Array *out_,    \
                               Array *cells_, Array *packed_, long total, long batch, long hidden, long count) {         \
        rl::Call call("lstm");                                                                                           \
        rl::Sizes all{total, batch, hidden, count};                                                                      \
        all.take(call, steps_);                                                                                          \
        T *out = call.out<T>("out", out_, total, hidden);                                                                \
        rl::Lstm<T> cell{hidden, {out, call.in<T>("first state", h0_, batch, hidden), hidden},                           \
                         call.out<T>("gates", gates_, total, 4L, hidden), call.out<T>("h", h_, batch, hidden),           \
                         call.out<T>("c", c_, batch, hidden), out, call.maybe_out<T>("cells", cells_, total, hidden)};   \
        const T *w = call.in<T>("weight", w_, 4L, hidden, hidden);                                                       \
        T *packed = all.room<T>(call, packed_, 4);                                                                       \
        call.run([&] { rl::forward(cell, all.steps, count, batch, hidden, w, packed); });                                \
    }                                                                                                                    \
    RL_EXPORT void rl_lstm_backward_##S(Array *d_out_, Array *gates_, Array *cells_, Array *c0_, Array *steps_,          \
                                        Array *w_, Array *dh_, Array *dc_, Array *d_gates_, Array *packed_, long total,  \
                                        long batch, long hidden, long count) {                                           \
        rl::Call call("lstm_backward");                                                                                  \
        rl::Sizes all{total, batch, hidden, count};                                                                      \
        all.take(call, steps_);                                                                                          \
        const T *cells = call.in<T>("cells", cells_, total, hidden);                                                     \
        rl::LstmSlope<T> cell{hidden, {cells, call.in<T>("first cell", c0_, batch, hidden), hidden},                     \
                              call.in<T>("gradient", d_out_, total, hidden),                                             \
                              call.in<T>("gates", gates_, total, 4L, hidden), cells,                                     \
                              call.out<T>("dh", dh_, batch, hidden), call.out<T>("dc", dc_, batch, hidden),              \
                              call.out<T>("d_gates", d_gates_, total, 4L, hidden)};                                      \
        const T *w = call.in<T>("weight", w_, 4L, hidden, hidden);                                                       \
        T *packed = all.room<T>(call, packed_, 4);                                                                       \
        call.run([&] { rl::backward(cell, all.steps, count, batch, hidden, w, packed); });                               \
    }
RL_BOTH(LSTM)

#define LSTM_CELL(T, S)                                                                                                  \
    RL_EXPORT void rl_lstm_cell_##S(Array *x_, Array *s_, Array *c_, Array *kept_, Array *h_, Array *next_, long rows,   \
                                    long hidden) {                                                                       \
        rl::Call call("lstm_cell");                                                                                      \
        const T *x = call.in<T>("inputs' part", x_, rows, 4L, hidden), *s = call.in<T>("states' part", s_, rows, 4L, hidden); \
        const T *c = call.in<T>("cell", c_, rows, hidden);                                                               \
        T *kept = call.out<T>("kept", kept_, rows, 5L, hidden), *h = call.out<T>("h", h_, rows, hidden);                 \
        T *next = call.out<T>("c", next_, rows, hidden);                                                                 \
        call.run([&] { rl::lstm_cell(x, s, c, kept, h, next, rows, hidden); });                                          \
    }                                                                                                                    \
    RL_EXPORT void rl_lstm_cell_backward_##S(Array *d_h_, Array *d_next_, Array *kept_, Array *c_, Array *d_gates_,      \
                                             Array *d_c_, long rows, long hidden) {                                      \
        rl::Call call("lstm_cell_backward");                                                                             \
        const T *d_h = call.maybe_in<T>("dh", d_h_, rows, hidden), *d_next = call.maybe_in<T>("dc", d_next_, rows, hidden); \
        const T *kept = call.in<T>("kept", kept_, rows, 5L, hidden), *c = call.in<T>("cell", c_, rows, hidden);          \
        T *d_gates = call.out<T>("d_gates", d_gates_, rows, 4L, hidden), *d_c = call.out<T>("d_c", d_c_, rows, hidden);  \
        call.run([&] { rl::lstm_cell_backward(d_h, d_next, kept, c, d_gates, d_c, rows, hidden); });                     \
    }
RL_BOTH(LSTM_CELL)

#define GRU(T, S)                                                                                                        \
    RL_EXPORT void rl_gru_##S(Array *gates_, Array *steps_, Array *h0_, Array *w_, Array *bias_, Array *h_, Array *out_,  \
                              Array *inner_, Array *packed_, long total, long batch, long hidden, long count) {          \
        rl::Call call("gru");                                                                                            \
        rl::Sizes all{total, batch, hidden, count};                                                                      \
        all.take(call, steps_);                                                                                          \
        T *out = call.out<T>("out", out_, total, hidden);                                                                \
        rl::Gru<T> cell{hidden, {out, call.in<T>("first state", h0_, batch, hidden), hidden},                            \
                        call.maybe_in<T>("bias", bias_, 3L, hidden), call.out<T>("gates", gates_, total, 3L, hidden),    \
                        call.out<T>("h", h_, batch, hidden), out, call.maybe_out<T>("inner", inner_, total, hidden)};    \
        const T *w = call.in<T>("weight", w_, 3L, hidden, hidden);                                                       \
        T *packed = all.room<T>(call, packed_, 3);                                                                       \
        call.run([&] { rl::forward(cell, all.steps, count, batch, hidden, w, packed); });                                \
    }                                                                                                                    \
    RL_EXPORT void rl_gru_backward_##S(Array *d_out_, Array *gates_, Array *inner_, Array *out_, Array *h0_,             \
                                       Array *steps_, Array *w_, Array *dh_, Array *d_gates_, Array *d_new_,             \
                                       Array *packed_, long total, long batch, long hidden, long count) {                \
        rl::Call call("gru_backward");                                                                                   \
        rl::Sizes all{total, batch, hidden, count};                                                                      \
        all.take(call, steps_);                                                                                          \
        rl::GruSlope<T> cell{                                                                                            \
            hidden,                                                                                                      \
            {call.in<T>("output", out_, total, hidden), call.in<T>("first state", h0_, batch, hidden), hidden},          \
            call.in<T>("gradient", d_out_, total, hidden), call.in<T>("gates", gates_, total, 3L, hidden),               \
            call.in<T>("inner", inner_, total, hidden), call.out<T>("dh", dh_, batch, hidden),                           \
            call.out<T>("d_gates", d_gates_, total, 3L, hidden), call.out<T>("d_new", d_new_, total, hidden)};           \
        const T *w = call.in<T>("weight", w_, 3L, hidden, hidden);                                                       \
        T *packed = all.room<T>(call, packed_, 3);                                                                       \
        call.run([&] { rl::backward(cell, all.steps, count, batch, hidden, w, packed); });                               \
    }
RL_BOTH(GRU)

#define RNN(T, S)                                                                                                        \
    RL_EXPORT void rl_rnn_##S(Array *gates_, Array *steps_, Array *h0_, Array *w_, Array *h_, Array *packed_, int relu,   \
                              long total, long batch, long hidden, long count) {                                         \
        rl::Call call("rnn");                                                                                            \
        rl::Sizes all{total, batch, hidden, count};                                                                      \
        all.take(call, steps_);                                                                                          \
        T *gates = call.out<T>("gates", gates_, total, hidden);                                                          \
        rl::Rnn<T> cell{hidden, {gates, call.in<T>("first state", h0_, batch, hidden), hidden}, relu != 0, gates,        \
                        call.out<T>("h", h_, batch, hidden)};                                                            \
        const T *w = call.in<T>("weight", w_, hidden, hidden);                                                           \
        T *packed = all.room<T>(call, packed_, 1);                                                                       \
        call.run([&] { rl::forward(cell, all.steps, count, batch, hidden, w, packed); });                                \
    }                                                                                                                    \
    RL_EXPORT void rl_rnn_backward_##S(Array *d_out_, Array *out_, Array *steps_, Array *w_, Array *dh_,                 \
                                       Array *d_gates_, Array *packed_, int relu, long total, long batch, long hidden,   \
                                       long count) {                                                                     \
        rl::Call call("rnn_backward");                                                                                   \
        rl::Sizes all{total, batch, hidden, count};                                                                      \
        all.take(call, steps_);                                                                                          \
        const T *out = call.in<T>("output", out_, total, hidden);                                                        \
        rl::RnnSlope<T> cell{hidden, {out, out, hidden}, relu != 0,                                                      \
                             call.in<T>("gradient", d_out_, total, hidden), out,                                           \
                             call.out<T>("dh", dh_, batch, hidden), call.out<T>("d_gates", d_gates_, total, hidden)};    \
        const T *w = call.in<T>("weight", w_, hidden, hidden);                                                           \
        T *packed = all.room<T>(call, packed_, 1);                                                                       \
        call.run([&] { rl::backward(cell, all.steps, count, batch, hidden, w, packed); });                               \
    }
RL_BOTH(RNN)
