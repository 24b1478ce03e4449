// Connectionist temporal classification (Graves et al. 2006), in logarithms, each sample on a thread of its own.  Its states are a blank
// before, between and after its labels; what leads to one is that state, the one before and, where `skip` says so, the one before that.
#include "common.h"
#include "memory.h"
#include "vecmath.h"

namespace rl {
namespace {

constexpr long kEdge = 2;    // states of no probability before the first, and behind the last
constexpr long kLanes = 16;  // states that are computed together: rows are filled up

// log(exp(a) + exp(b) + exp(c)); NaN where one is.
template <class T> RL_INLINE T log_sum(T a, T b, T c) {
    T m = a > b ? a : b;
    m = c > m ? c : m;
    const T base = m == -infinity<T>() || m == infinity<T>() ? T(0) : m;
    return base + rl::log(rl::exp(a - base) + rl::exp(b - base) + rl::exp(c - base));
}

template <class T> struct Sample {
    Place<const T> log_probs;  // (steps, classes)
    const int64_t *labels;
    long steps, size, states, lanes;  // lanes: the states, filled up
    T *emitted, *skips;               // rows of states: what the last asked for step emits; 1 where the state two before may come before

    const T *at(long t) const { return log_probs.data + t * log_probs.head; }

    void emit(long t) const {
        const T *row = at(t);
        for (long s = 0; s < states; ++s) emitted[s] = row[labels[s]];
    }

    void empty(T *row) const { std::fill(row - kEdge, row + lanes + kEdge, -infinity<T>()); }

    void first(T *row) const {
        empty(row);
        emit(0);
        for (long s = 0; s < std::min(states, 2L); ++s) row[s] = emitted[s];
    }

    void forward(long t, const T *old, T *row) const {
        emit(t);
#pragma omp simd
        for (long s = 0; s < lanes; ++s)
            row[s] = log_sum(old[s], old[s - 1], skips[s] > 0 ? old[s - 2] : -infinity<T>()) + emitted[s];
    }

    void last(T *row) const {
        empty(row);
        row[states - 1] = 0;
        if (size) row[states - 2] = 0;
    }

    // `old`: of the step behind this one, with what it emits.
    void backward(const T *old, T *row) const {
#pragma omp simd
        for (long s = 0; s < lanes; ++s)
            row[s] = log_sum(old[s], old[s + 1], skips[s + 2] > 0 ? old[s + 2] : -infinity<T>());
    }

    // Minus the logarithm of the probability of the labels.  row: of the last step
    T loss(const T *row) const {
        if (!steps) return size ? infinity<T>() : -T(0);
        return -log_sum(row[states - 1], size ? row[states - 2] : -infinity<T>(), -infinity<T>());
    }
};

template <class T> struct Batch {
    Place<const T> log_probs;
    const int64_t *labels, *steps, *sizes;
    const uint8_t *skip;
    long T_, N, C, L;

    long lanes() const { return ceil_div(L, kLanes) * kLanes; }
    long width() const { return lanes() + 2 * kEdge; }

    // Of sample n; `rows`: two of states, each behind an edge.
    Sample<T> sample(long n, T *rows) const {
        Place<const T> own = log_probs;
        own.data += n * log_probs.row;
        T *emitted = rows, *skips = rows + width();
        const long states = 2 * sizes[n] + 1;
        std::fill(emitted, emitted + lanes(), T(0)), std::fill(skips, skips + lanes() + kEdge, T(0));
        for (long s = 0; s < states; ++s) skips[s] = skip[n * L + s];
        return {own, labels + n * L, steps[n], sizes[n], states, ceil_div(states, kLanes) * kLanes, emitted, skips};
    }

    long grain() const { return row_grain(16 * T_ * L); }
};

template <class T> void losses(const Batch<T> &b, T *out) {
    const long width = b.width(), room = 4 * width;
    Scratch<T> rows(b.N * room);
    T *own = rows.get();
    parallel_for(b.N, b.grain(), [=](long begin, long end) {
        for (long n = begin; n < end; ++n) {
            T *old = own + n * room + kEdge, *row = old + width;
            const Sample<T> sample = b.sample(n, row + width);
            if (sample.steps) sample.first(old), sample.empty(row);
            for (long t = 1; t < sample.steps; ++t) sample.forward(t, old, row), std::swap(old, row);
            out[n] = sample.loss(old);
        }
    });
}

// A row of the gradient: of each class its probability without the share of the ways that go through it.
template <class T> void put_slopes(const Sample<T> &sample, long t, const T *before, const T *after, T loss, T g, T *out, long classes) {
    const T *row = sample.at(t);
    T *share = sample.emitted;
#pragma omp simd
    for (long s = 0; s < sample.lanes; ++s) share[s] = rl::exp(before[s] + after[s] + loss);
    std::fill(out, out + classes, T(0));
    for (long s = 0; s < sample.states; ++s) out[sample.labels[s]] += share[s];
#pragma omp simd
    for (long c = 0; c < classes; ++c) out[c] = (rl::exp(row[c]) - out[c]) * g;
}

template <class T> void slopes_of(const Sample<T> &sample, T *alpha, long width, T *after, T *next, T g, T impossible, T *out, long apart, long classes) {
    if (!sample.steps) return;
    sample.first(alpha);
    for (long t = 1; t < sample.steps; ++t) {
        T *row = alpha + t * width;
        sample.empty(row);
        sample.forward(t, row - width, row);
    }
    const T loss = sample.loss(alpha + (sample.steps - 1) * width);
    sample.last(after), sample.empty(next);
    for (long t = sample.steps - 1; t >= 0; --t) {
        if (loss == infinity<T>()) {
            std::fill(out + t * apart, out + t * apart + classes, impossible);
            continue;
        }
        put_slopes(sample, t, alpha + t * width, after, loss, g, out + t * apart, classes);
        sample.emit(t);
        for (long s = 0; s < sample.states; ++s) after[s] += sample.emitted[s];
        sample.backward(after, next), std::swap(after, next);
    }
}

template <class T> void slopes(const Batch<T> &b, const T *g, T impossible, T *out) {
    const long width = b.width(), room = (b.T_ + 4) * width;
    Scratch<T> rows(b.N * room);
    T *own = rows.get();
    parallel_for(b.N, b.grain(), [=](long begin, long end) {
        for (long n = begin; n < end; ++n) {
            T *after = own + n * room + kEdge, *next = after + width, *alpha = next + 3 * width;
            const Sample<T> sample = b.sample(n, next + width);
            for (long t = sample.steps; t < b.T_; ++t) std::fill_n(out + (t * b.N + n) * b.C, b.C, 0 * g[n]);
            slopes_of(sample, alpha, width, after, next, g[n], impossible, out + n * b.C, b.N * b.C, b.C);
        }
    });
}

template <class T>
Batch<T> batch_of(Call &call, Array *log_probs, Array *labels, Array *skip, Array *steps, Array *sizes, long T_, long N, long C, long L) {
    call.expect(N > 0 && C > 0 && L > 0, "samples, classes and states");
    Batch<T> b{call.rows<const T>("log_probs", log_probs, 1, T_, N, C), call.in<int64_t>("labels", labels, N, L),
               call.in<int64_t>("steps", steps, N), call.in<int64_t>("sizes", sizes, N), call.in<uint8_t>("skip", skip, N, L), T_, N, C, L};
    for (long n = 0; b.steps && b.sizes && n < N; ++n)
        call.expect(0 <= b.steps[n] && b.steps[n] <= T_ && 0 <= b.sizes[n] && 2 * b.sizes[n] < L, "lengths that fit");
    for (long i = 0; b.labels && i < N * L; ++i) call.expect(0 <= b.labels[i] && b.labels[i] < C, "labels that are classes");
    return b;
}

}  // namespace
}  // namespace rl

#define ALL(T, S)                                                                                                                        \
    RL_EXPORT void rl_ctc_##S(Array *x_, Array *labels_, Array *skip_, Array *steps_, Array *sizes_, Array *out_, long steps, long N,    \
                              long C, long L) {                                                                                          \
        rl::Call call("ctc");                                                                                                            \
        const rl::Batch<T> batch = rl::batch_of<T>(call, x_, labels_, skip_, steps_, sizes_, steps, N, C, L);                            \
        T *out = call.out<T>("losses", out_, N);                                                                                         \
        call.run([=] { rl::losses(batch, out); });                                                                                       \
    }                                                                                                                                    \
    RL_EXPORT void rl_ctc_backward_##S(Array *g_, Array *x_, Array *labels_, Array *skip_, Array *steps_, Array *sizes_, Array *out_,    \
                                       long steps, long N, long C, long L, double impossible) {                                          \
        rl::Call call("ctc_backward");                                                                                                   \
        const rl::Batch<T> batch = rl::batch_of<T>(call, x_, labels_, skip_, steps_, sizes_, steps, N, C, L);                            \
        const T *g = call.in<T>("gradient", g_, N);                                                                                      \
        T *out = call.out<T>("slopes", out_, steps, N, C);                                                                               \
        call.run([=] { rl::slopes(batch, g, (T)impossible, out); });                                                                     \
    }
RL_BOTH(ALL)
