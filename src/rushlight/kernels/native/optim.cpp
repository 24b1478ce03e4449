// Optimizer steps, in place, one pass over memory, those of many parameters in one call.  The order of operations is PyTorch's.
#include <cmath>
#include <limits>
#include <vector>

#include "vecmath.h"

namespace rl {

constexpr long kStepGrain = 32768;
constexpr int kSlots = 3;  // at most, of states beside a parameter

// A moment whose gradient stays 0 decays until it is subnormal and then stays so for ever (0.9 of the smallest number
// rounds to itself), and processors compute with such numbers a hundred times slower.  It is far below what any
// parameter could feel.
template <class T> RL_INLINE T decayed(T x) { return x * (std::fabs(x) < std::numeric_limits<T>::min() ? T(0) : T(1)); }

// The larger one; NaN if either is: b where it is NaN, and a where it is.
template <class T> RL_INLINE T largest(T a, T b) { return choose((a > b) | (a != a), a, b); }

// Whether a rule has something.  As a number, which SIMD code compares, and choosing between numbers that are there: of a `bool`,
// and of two expressions, compilers make a branch, and no SIMD code.
template <class T> struct Flag {
    T value;
    explicit Flag(bool x) : value(x) {}
    RL_MEMBER T choose(T yes, T no) const { return value != T(0) ? yes : no; }
};

// From a to b by a fraction, in the form that is exact at the nearer end.
template <class T> struct Lerp {
    T weight;
    Flag<T> near;
    explicit Lerp(double w) : weight((T)(std::fabs(w) < 0.5 ? w : w - 1)), near(std::fabs(w) < 0.5) {}
    RL_MEMBER T operator()(T a, T b) const { return near.choose(a, b) + weight * (b - a); }
};

// The gradient with its sign, and with the penalty added; a parameter that is not finite is none of it where there is no penalty.
template <class T> struct Slope {
    T decay, sign;
    RL_MEMBER T operator()(T p, T g) const { return sign * g + decay * (decay != T(0) ? p : T(0)); }
};

// A rule is made of the numbers of one step, kNumbers of them, and changes one element of a parameter `p` by that of its gradient
// `g`, with those of its states `a`, `b` and `c`.  kNeeds: bits of the states it has; kTakes: of those it may have.  kHas: of
// those that are there; rules touch no others.

template <class T> struct Adam {
    static constexpr int kNumbers = 8, kNeeds = 3, kTakes = 7;
    T rate, beta2, rest2, root, eps, shrink;
    Lerp<T> mean;
    Slope<T> slope;
    explicit Adam(const double *x)
        : rate((T)x[0]), beta2((T)x[2]), rest2((T)(1 - x[2])), root((T)x[3]), eps((T)x[4]), shrink((T)x[6]), mean(1 - x[1]),
          slope{(T)x[5], (T)x[7]} {}
    template <int kHas> RL_MEMBER void step(T &p, T g, T &a, T &b, T &c) const {
        const T x = p * shrink, d = slope(x, g), first = mean(a, d);
        T second = b * beta2 + rest2 * d * d;
        a = decayed(first);
        b = decayed(second);
        if (kHas & 4) c = second = largest(c, second);
        p = x - rate * first / (std::sqrt(second) / root + eps);
    }
};

template <class T> struct Sgd {
    static constexpr int kNumbers = 7, kNeeds = 0, kTakes = 1;
    T lr, momentum, keep;
    Slope<T> slope;
    Flag<T> nesterov, first;
    explicit Sgd(const double *x)
        : lr((T)x[0]), momentum((T)x[1]), keep((T)(1 - x[2])), slope{(T)x[3], (T)x[4]}, nesterov(x[5] != 0), first(x[6] != 0) {}
    template <int kHas> RL_MEMBER void step(T &p, T g, T &a, T &, T &) const {
        T d = slope(p, g);
        if (kHas & 1) {
            a = decayed(first.choose(d, a * momentum + keep * d));
            d = nesterov.choose(d + momentum * a, a);
        }
        p -= lr * d;
    }
};

template <class T> struct Adagrad {
    static constexpr int kNumbers = 4, kNeeds = 1, kTakes = 1;
    T lr, eps;
    Slope<T> slope;
    explicit Adagrad(const double *x) : lr((T)x[0]), eps((T)x[1]), slope{(T)x[2], (T)x[3]} {}
    template <int kHas> RL_MEMBER void step(T &p, T g, T &a, T &, T &) const {
        const T d = slope(p, g);
        a = a + d * d;
        p -= lr * d / (std::sqrt(a) + eps);
    }
};

template <class T> struct Rmsprop {
    static constexpr int kNumbers = 6, kNeeds = 1, kTakes = 7;
    T lr, alpha, rest, eps, momentum;
    Lerp<T> mean;
    Slope<T> slope;
    explicit Rmsprop(const double *x)
        : lr((T)x[0]), alpha((T)x[1]), rest(T(1) - (T)x[1]), eps((T)x[2]), momentum((T)x[4]), mean(1 - x[1]),
          slope{(T)x[3], (T)x[5]} {}
    template <int kHas> RL_MEMBER void step(T &p, T g, T &a, T &b, T &c) const {
        const T d = slope(p, g);
        T square = a = decayed(a * alpha + rest * d * d);
        if (kHas & 4) {
            c = mean(c, d);
            square = square - c * c;
        }
        T change = d / (std::sqrt(square) + eps);
        if (kHas & 2) b = change = decayed(b * momentum + change);
        p -= lr * change;
    }
};

template <class T> struct Adamax {
    static constexpr int kNumbers = 6, kNeeds = 3, kTakes = 3;
    T rate, beta2, eps;
    Lerp<T> mean;
    Slope<T> slope;
    explicit Adamax(const double *x)
        : rate((T)x[0]), beta2((T)x[2]), eps((T)x[3]), mean(1 - x[1]), slope{(T)x[4], (T)x[5]} {}
    template <int kHas> RL_MEMBER void step(T &p, T g, T &a, T &b, T &) const {
        const T d = slope(p, g), first = mean(a, d);
        a = decayed(first);
        b = largest(beta2 * b, std::fabs(d) + eps);
        p -= rate * first / b;
    }
};

template <class T> struct Nadam {
    static constexpr int kNumbers = 9, kNeeds = 3, kTakes = 3;
    T of_grad, of_mean, beta2, rest2, correction, eps, shrink;
    Lerp<T> mean;
    Slope<T> slope;
    explicit Nadam(const double *x)
        : of_grad((T)x[0]), of_mean((T)x[1]), beta2((T)x[3]), rest2((T)(1 - x[3])), correction((T)x[4]), eps((T)x[5]),
          shrink((T)x[7]), mean(1 - x[2]), slope{(T)x[6], (T)x[8]} {}
    template <int kHas> RL_MEMBER void step(T &p, T g, T &a, T &b, T &) const {
        const T x = p * shrink, d = slope(x, g), first = mean(a, d), second = b * beta2 + rest2 * d * d;
        a = decayed(first);
        b = decayed(second);
        p = x - (of_grad * d + of_mean * first) / (std::sqrt(second / correction) + eps);
    }
};

template <class T> struct Radam {
    static constexpr int kNumbers = 8, kNeeds = 3, kTakes = 3;
    T rate, scale, beta2, rest2, eps, shrink;
    Flag<T> scaled;
    Lerp<T> mean;
    Slope<T> slope;
    explicit Radam(const double *x)
        : rate((T)x[0]), scale((T)(x[1] != 0 ? x[1] : 1)), beta2((T)x[3]), rest2((T)(1 - x[3])), eps((T)x[4]), shrink((T)x[6]),
          scaled(x[1] != 0), mean(1 - x[2]), slope{(T)x[5], (T)x[7]} {}
    template <int kHas> RL_MEMBER void step(T &p, T g, T &a, T &b, T &) const {
        const T x = p * shrink, d = slope(x, g), first = mean(a, d), second = b * beta2 + rest2 * d * d;
        a = decayed(first);
        b = decayed(second);
        p = x - rate * first * scale / scaled.choose(std::sqrt(second) + eps, T(1));
    }
};

template <class T> struct Asgd {
    static constexpr int kNumbers = 5, kNeeds = 1, kTakes = 1;
    T eta, mu, shrink;
    Slope<T> slope;
    Flag<T> copied;
    explicit Asgd(const double *x)
        : eta((T)x[0]), mu((T)x[1]), shrink((T)x[2]), slope{(T)x[3], (T)x[4]}, copied(x[1] == 1) {}
    template <int kHas> RL_MEMBER void step(T &p, T g, T &a, T &, T &) const {
        p = p * shrink - eta * slope(p, g);
        a = copied.choose(p, a + mu * (p - a));
    }
};

template <class T> struct Adadelta {
    static constexpr int kNumbers = 5, kNeeds = 3, kTakes = 3;
    T lr, rho, rest, eps;
    Slope<T> slope;
    explicit Adadelta(const double *x)
        : lr((T)x[0]), rho((T)x[1]), rest((T)(1 - x[1])), eps((T)x[2]), slope{(T)x[3], (T)x[4]} {}
    template <int kHas> RL_MEMBER void step(T &p, T g, T &a, T &b, T &) const {
        const T d = slope(p, g);
        a = decayed(rho * a + rest * d * d);
        const T delta = std::sqrt(b + eps) / std::sqrt(a + eps) * d;
        b = decayed(rho * b + rest * delta * delta);
        p -= lr * delta;
    }
};

template <class T> struct Rprop {
    static constexpr int kNumbers = 5, kNeeds = 3, kTakes = 3;
    T cut, grown, least, most, sign;
    explicit Rprop(const double *x) : cut((T)x[0]), grown((T)x[1]), least((T)x[2]), most((T)x[3]), sign((T)x[4]) {}
    template <int kHas> RL_MEMBER void step(T &p, T g, T &a, T &b, T &) const {
        const T slope = sign * g, agreement = slope * a;
        T size = b * (agreement < T(0) ? cut : agreement > T(0) ? grown : T(1));
        size = size < least ? least : size;
        b = size = size > most ? most : size;
        const T d = agreement < T(0) ? T(0) : slope;
        a = d;
        p -= (d > T(0) ? T(1) : d < T(0) ? T(-1) : d) * size;
    }
};

// A parameter, its gradient and its states, of which `has` says which are there.
template <class T> struct Stepped {
    T *p, *slots[kSlots];
    const T *g;
    long n;
    int has;
};

template <int kHas, class T, class Rule> static void sweep(const Rule &given, const Stepped<T> &t) {
    T *p = t.p, *a = kHas & 1 ? t.slots[0] : p, *b = kHas & 2 ? t.slots[1] : p, *c = kHas & 4 ? t.slots[2] : p;
    const T *g = t.g;
    parallel_for(t.n, kStepGrain, [=](long begin, long end) {
        const Rule rule = given;
#pragma omp simd
        for (long i = begin; i < end; ++i) rule.template step<kHas>(p[i], g[i], a[i], b[i], c[i]);
    });
}

// The sweep for those states that are there.
template <class Rule, class T, int kHas = 0> static void step(const Rule &rule, const Stepped<T> &t) {
    if constexpr ((kHas & Rule::kNeeds) == Rule::kNeeds && (kHas & ~Rule::kTakes) == 0)
        if (t.has == kHas) return sweep<kHas, T>(rule, t);
    if constexpr (kHas < Rule::kTakes) step<Rule, T, kHas + 1>(rule, t);
}

// Reads one parameter, gradient and `kSlots` states, None among them; whether they have one shape, dtype and layout.
template <class T> static bool read(Array *const *x, Stepped<T> *to) {
    to->p = Call::paired<T>(x[0], x[0], true);
    to->g = to->p ? Call::paired<T>(x[1], x[0], false) : nullptr;
    if (!to->g) return false;
    int order = x[0]->flags & x[1]->flags;
    to->n = Call::product(x[0]);
    to->has = 0;
    for (int i = 0; i < kSlots; ++i) {
        to->slots[i] = nullptr;
        if (Call::none(x[2 + i])) continue;
        to->slots[i] = Call::paired<T>(x[2 + i], x[0], true);
        if (!to->slots[i]) return false;
        to->has |= 1 << i;
        order &= x[2 + i]->flags;
    }
    return order & (kC | kFortran);
}

// Steps `count` parameters; how many before the first that it is not for.
template <template <class> class Rule, class T>
static long steps(const char *name, Array *objects, Array *numbers, long count, long rows) {
    using R = Rule<T>;
    Call call(name);
    Array *const *x = call.in<Array *>("parameters, gradients and states", objects, count, 2 + kSlots);
    const double *of_step = call.in<double>("numbers", numbers, rows, R::kNumbers);
    call.expect(rows == 1 || rows == count, "numbers: a row, or one for each parameter");
    std::vector<Stepped<T>> found;
    for (; x && (long)found.size() < count; x += 2 + kSlots) {
        Stepped<T> one;
        if (!read(x, &one) || (one.has & R::kNeeds) != R::kNeeds || (one.has & ~R::kTakes)) break;
        found.push_back(one);
    }
    call.run([&] {
        for (const Stepped<T> &one : found) {
            step(R(of_step), one);
            if (rows > 1) of_step += R::kNumbers;
        }
    });
    return (long)found.size();
}

}  // namespace rl

#define STEPS(NAME, RULE)                                                                                                  \
    template <class T> static long NAME##_all(Array *objects, Array *numbers, long count, long rows) {                     \
        return rl::steps<rl::RULE, T>(#NAME, objects, numbers, count, rows);                                               \
    }                                                                                                                      \
    RL_EXPORT long rl_##NAME##_f32(Array *x, Array *y, long n, long m) { return NAME##_all<float>(x, y, n, m); }           \
    RL_EXPORT long rl_##NAME##_f64(Array *x, Array *y, long n, long m) { return NAME##_all<double>(x, y, n, m); }

STEPS(adam, Adam)
STEPS(sgd, Sgd)
STEPS(adagrad, Adagrad)
STEPS(rmsprop, Rmsprop)
STEPS(adamax, Adamax)
STEPS(nadam, Nadam)
STEPS(radam, Radam)
STEPS(asgd, Asgd)
STEPS(adadelta, Adadelta)
STEPS(rprop, Rprop)
