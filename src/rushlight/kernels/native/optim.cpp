// Optimizer steps, in place, one pass over memory.  The order of operations is PyTorch's.
#include <cmath>
#include <limits>
#include <vector>

#include "common.h"

namespace rl {

constexpr long kStepGrain = 32768;

// A moment whose gradient stays 0 decays until it is subnormal and then stays so for ever (0.9 of the smallest number
// rounds to itself), and processors compute with such numbers a hundred times slower.  It is far below what any
// parameter could feel.
template <class T> RL_INLINE T decayed(T x) { return x * (std::fabs(x) < std::numeric_limits<T>::min() ? T(0) : T(1)); }

template <class T> struct AdamRule {
    T step_size, beta2, one_minus_beta1, one_minus_beta2, root_correction2, eps, decay, shrink, sign;
    bool low_weight;

    RL_INLINE T lerp(T a, T b, T w, bool low) { return low ? a + w * (b - a) : b - (b - a) * (T(1) - w); }
};

template <class T, bool kAmsgrad, bool kLow>
static void adam(T *p, const T *g, T *m, T *v, T *top, long n, AdamRule<T> r) {
    parallel_for(n, kStepGrain, [=](long begin, long end) {
#pragma omp simd
        for (long i = begin; i < end; ++i) {
            T x = p[i] * r.shrink, d = r.sign * g[i] + (r.decay != T(0) ? r.decay * x : T(0));
            T first = AdamRule<T>::lerp(m[i], d, r.one_minus_beta1, kLow);
            T second = v[i] * r.beta2 + r.one_minus_beta2 * d * d;
            m[i] = decayed(first);
            v[i] = decayed(second);
            if (kAmsgrad) {
                T t = top[i];
                second = t > second || t != t ? t : second;
                top[i] = second;
            }
            T denominator = std::sqrt(second) / r.root_correction2 + r.eps;
            p[i] = x - r.step_size * first / denominator;
        }
    });
}

template <class T, bool kAmsgrad>
static void adam(T *p, const T *g, T *m, T *v, T *top, long n, AdamRule<T> r) {
    if (r.low_weight) adam<T, kAmsgrad, true>(p, g, m, v, top, n, r);
    else adam<T, kAmsgrad, false>(p, g, m, v, top, n, r);
}

template <class T> struct SgdRule {
    T lr, momentum, keep, decay, sign;
    bool nesterov, first;
};

template <class T> static void sgd(T *p, const T *g, T *buffer, long n, SgdRule<T> r) {
    parallel_for(n, kStepGrain, [=](long begin, long end) {
        if (!buffer) {
#pragma omp simd
            for (long i = begin; i < end; ++i) p[i] -= r.lr * (r.sign * g[i] + (r.decay != T(0) ? r.decay * p[i] : T(0)));
            return;
        }
#pragma omp simd
        for (long i = begin; i < end; ++i) {
            T d = r.sign * g[i] + (r.decay != T(0) ? r.decay * p[i] : T(0));
            T b = decayed(r.first ? d : buffer[i] * r.momentum + r.keep * d);
            buffer[i] = b;
            p[i] -= r.lr * (r.nesterov ? d + r.momentum * b : b);
        }
    });
}

// What one step of many is for.
template <class T> struct Triple {
    T *p, *buffer;
    const T *g;
    long n;
};

// Those of `count` triples before the first that must be stepped otherwise: another dtype, shape or layout in it.
template <class T> static std::vector<Triple<T>> read_triples(Array *const *x, long count) {
    std::vector<Triple<T>> found;
    found.reserve(count);
    for (; count > 0; --count, x += 3) {
        const bool bare = Call::none(x[2]);
        T *p = Call::paired<T>(x[0], x[0], true), *buffer = bare ? nullptr : Call::paired<T>(x[2], x[0], true);
        const T *g = Call::paired<T>(x[1], buffer ? x[2] : x[0], false);
        if (!p || !g || !(bare || buffer) || !(x[0]->flags & x[1]->flags & (kC | kFortran))) break;
        found.push_back({p, buffer, g, Call::product(x[0])});
    }
    return found;
}

template <class T> static void adagrad(T *p, const T *g, T *sum, long n, T lr, T eps, T decay, T sign) {
    parallel_for(n, kStepGrain, [=](long begin, long end) {
#pragma omp simd
        for (long i = begin; i < end; ++i) {
            T d = sign * g[i] + (decay != T(0) ? decay * p[i] : T(0));
            T s = sum[i] + d * d;
            sum[i] = s;
            p[i] -= lr * d / (std::sqrt(s) + eps);
        }
    });
}

template <class T> struct RmspropRule {
    T lr, alpha, eps, decay, momentum, sign;
    bool low_weight;
};

template <class T, bool kMomentum, bool kCentered>
static void rmsprop(T *p, const T *g, T *square, T *buffer, T *mean, long n, RmspropRule<T> r) {
    parallel_for(n, kStepGrain, [=](long begin, long end) {
#pragma omp simd
        for (long i = begin; i < end; ++i) {
            T d = r.sign * g[i] + (r.decay != T(0) ? r.decay * p[i] : T(0));
            T s = decayed(square[i] * r.alpha + (T(1) - r.alpha) * d * d);
            square[i] = s;
            if (kCentered) {
                T a = AdamRule<T>::lerp(mean[i], d, T(1) - r.alpha, r.low_weight);
                mean[i] = a;
                s = s - a * a;
            }
            T step = d / (std::sqrt(s) + r.eps);
            if (kMomentum) {
                step = decayed(buffer[i] * r.momentum + step);
                buffer[i] = step;
            }
            p[i] -= r.lr * step;
        }
    });
}

template <class T>
static void rmsprop(T *p, const T *g, T *square, T *buffer, T *mean, long n, RmspropRule<T> r) {
    if (buffer && mean) rmsprop<T, true, true>(p, g, square, buffer, mean, n, r);
    else if (buffer) rmsprop<T, true, false>(p, g, square, buffer, mean, n, r);
    else if (mean) rmsprop<T, false, true>(p, g, square, buffer, mean, n, r);
    else rmsprop<T, false, false>(p, g, square, buffer, mean, n, r);
}

}  // namespace rl

#define ALL(T, S)                                                                                             \
    RL_EXPORT void rl_adam_##S(Array *p_, Array *g_, Array *m_, Array *v_, Array *top_, long n,               \
                               double step_size, double beta1, double beta2, double root_correction2,         \
                               double eps, double decay, double shrink, double sign) {                        \
        rl::Call call("adam");                                                                                \
        T *p = call.pair_out<T>("parameter", p_, n), *m = call.pair_out<T>("exp_avg", m_, n);                 \
        T *v = call.pair_out<T>("exp_avg_sq", v_, n), *top = call.maybe_pair_out<T>("max_exp_avg_sq", top_, n); \
        const T *g = call.pair_in<T>("gradient", g_, n);                                                      \
        rl::AdamRule<T> r{};                                                                                  \
        r.step_size = (T)step_size, r.beta2 = (T)beta2, r.one_minus_beta1 = (T)(1 - beta1);                   \
        r.one_minus_beta2 = (T)(1 - beta2), r.root_correction2 = (T)root_correction2, r.eps = (T)eps;         \
        r.decay = (T)decay, r.shrink = (T)shrink, r.sign = (T)sign, r.low_weight = 1 - beta1 < 0.5;           \
        call.run([=] {                                                                                        \
            if (top) rl::adam<T, true>(p, g, m, v, top, n, r);                                                \
            else rl::adam<T, false>(p, g, m, v, nullptr, n, r);                                               \
        });                                                                                                   \
    }                                                                                                         \
    RL_EXPORT void rl_sgd_##S(Array *p_, Array *g_, Array *buffer_, long n, double lr, double momentum,       \
                              double dampening, double decay, double sign, int nesterov, int first) {         \
        rl::Call call("sgd");                                                                                 \
        T *p = call.pair_out<T>("parameter", p_, n);                                                          \
        T *buffer = call.maybe_pair_out<T>("momentum_buffer", buffer_, n);                                    \
        const T *g = call.pair_in<T>("gradient", g_, n);                                                      \
        rl::SgdRule<T> r{(T)lr, (T)momentum, (T)(1 - dampening), (T)decay, (T)sign, !!nesterov, !!first};     \
        call.run([=] { rl::sgd<T>(p, g, buffer, n, r); });                                                    \
    }                                                                                                         \
    RL_EXPORT long rl_sgd_many_##S(Array *triples, long count, double lr, double momentum, double dampening,  \
                                   double decay, double sign, int nesterov) {                                 \
        rl::Call call("sgd");                                                                                 \
        rl::SgdRule<T> r{(T)lr, (T)momentum, (T)(1 - dampening), (T)decay, (T)sign, !!nesterov, false};       \
        Array *const *all = call.in<Array *>("parameters, gradients and buffers", triples, count, 3);         \
        std::vector<rl::Triple<T>> found = rl::read_triples<T>(all, all ? count : 0);                         \
        call.run([=, &found] {                                                                                \
            for (const rl::Triple<T> &t : found) rl::sgd<T>(t.p, t.g, t.buffer, t.n, r);                      \
        });                                                                                                   \
        return (long)found.size();                                                                            \
    }                                                                                                         \
    RL_EXPORT void rl_adagrad_##S(Array *p_, Array *g_, Array *sum_, long n, double lr, double eps,           \
                                  double decay, double sign) {                                                \
        rl::Call call("adagrad");                                                                             \
        T *p = call.pair_out<T>("parameter", p_, n), *sum = call.pair_out<T>("sum", sum_, n);                 \
        const T *g = call.pair_in<T>("gradient", g_, n);                                                      \
        call.run([=] { rl::adagrad<T>(p, g, sum, n, (T)lr, (T)eps, (T)decay, (T)sign); });                    \
    }                                                                                                         \
    RL_EXPORT void rl_rmsprop_##S(Array *p_, Array *g_, Array *square_, Array *buffer_, Array *mean_, long n, \
                                  double lr, double alpha, double eps, double decay, double momentum,         \
                                  double sign) {                                                              \
        rl::Call call("rmsprop");                                                                             \
        T *p = call.pair_out<T>("parameter", p_, n), *square = call.pair_out<T>("square_avg", square_, n);    \
        T *buffer = call.maybe_pair_out<T>("momentum_buffer", buffer_, n);                                    \
        T *mean = call.maybe_pair_out<T>("grad_avg", mean_, n);                                               \
        const T *g = call.pair_in<T>("gradient", g_, n);                                                      \
        rl::RmspropRule<T> r{(T)lr, (T)alpha, (T)eps, (T)decay, (T)momentum, (T)sign, 1 - alpha < 0.5};       \
        call.run([=] { rl::rmsprop<T>(p, g, square, buffer, mean, n, r); });                                  \
    }
RL_BOTH(ALL)
