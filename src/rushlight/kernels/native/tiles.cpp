// Products of bfloat16 matrices and attention, on processors with AMX.
#if defined(__x86_64__) && defined(__linux__) && (defined(__clang__) || __GNUC__ >= 11)
#include <sys/syscall.h>
#include <unistd.h>

#include "attention_pairs.h"
#include "tiles.h"

// Asks the system for leave to use the tiles' registers, for all threads of the process; 0 where it is given.  (Signal handlers
// with a stack of their own need 8 KiB more of it from then on, so that it is asked for when tiles are first wanted.)
RL_EXPORT long rl_leave_bf16() {
    constexpr long kAsk = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kAsk, kTileData);
}

RL_EXPORT void rl_product_tiles_bf16(Array *a, Array *b, Array *row, Array *out, Array *packed, int a_turned, int b_turned,
                                     long batch, long rows, long steps, long columns) {
    rl::multiply_all<rl::Tiles>("product", a, b, row, out, packed, a_turned, b_turned, batch, rows, steps, columns);
}

RL_EXPORT void rl_attention_tiles_bf16(Array *q, Array *k, Array *v, Array *mask, Array *out, Array *lse, int causal, double scale) {
    rl::attend_all<rl::Tiles>(q, k, v, mask, out, lse, causal, scale);
}

RL_EXPORT void rl_attention_backward_tiles_bf16(Array *g, Array *q, Array *k, Array *v, Array *mask, Array *lse, Array *gq, Array *gk,
                                          Array *gv, int causal, double scale) {
    rl::attend_backward_all<rl::Tiles>(g, q, k, v, mask, lse, gq, gk, gv, causal, scale);
}
#endif
