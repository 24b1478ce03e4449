// What every kernel file needs: NumPy arrays checked and read (call.h), exporting symbols, running loops on the pool.
#pragma once
#include <cstdint>
#include <cstring>

#include "call.h"

#define RL_EXPORT extern "C" __attribute__((visibility("default")))
#define RL_INLINE static inline __attribute__((always_inline))
#define RL_MEMBER inline __attribute__((always_inline))

// One exported function per real dtype: RL_BOTH(MACRO) expands MACRO(type, suffix) twice.
#define RL_BOTH(M) M(float, f32) M(double, f64)

namespace rl {

using Body = void (*)(void *context, long begin, long end);

int threads();
void run(long count, long grain, Body body, void *context, bool wakes);

// Calls f(begin, end) on pieces of [0, count), each a multiple of `grain` long (but the last), from several
// threads if there is more than one piece.  Which thread takes which piece is open; the results must not
// depend on it.
template <class F> __attribute__((noinline)) void piece(void *f, long begin, long end) {
    (*static_cast<F *>(f))(begin, end);
#if defined(__AVX__) && defined(__x86_64__)
    __builtin_ia32_vzeroupper();  // GCC forgets it on some ways out, after which a Zen 4 takes three times as long for SSE code, NumPy's sums
#endif
}

template <class F> inline void parallel_for(long count, long grain, F f) {
    if (grain < 1) grain = 1;
    if (count <= 0) return;
    // One copy of the body, called from both places: inlined here a second time, GCC leaves it scalar.
    if (count <= grain || threads() <= 1) piece<F>(&f, 0, count);
    else run(count, grain, piece<F>, &f, false);
}

// Elements that make one piece worth a thread.
constexpr long kGrain = 16384;

// Multiplications that make one, and those that take longer than to wake a thread does.
constexpr long kProducts = 16 * kGrain, kWorthWaking = 16 * kProducts;

// Calls f(begin, end) on tasks of `work` multiplications in all.  A few tasks may be much: then workers that sleep are woken for them.
template <class F> inline void parallel_tasks(long count, long work, F f) {
    if (count <= 0) return;
    const long grain = 1 + kProducts / (work / count + 1);
    if (count <= grain || threads() <= 1) piece<F>(&f, 0, count);
    else run(count, grain, piece<F>, &f, work >= kWorthWaking);
}

inline long ceil_div(long n, long unit) { return (n + unit - 1) / unit; }

inline long row_grain(long row_length) { return kGrain / (row_length < 1 ? 1 : row_length) + 1; }

}  // namespace rl
