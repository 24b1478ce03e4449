// Products of bfloat16 matrices and attention, on processors with AVX512-BF16.
#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ >= 10)
#include "attention_pairs.h"
#include "dots.h"

RL_EXPORT void rl_product_bf16(Array *a, Array *b, Array *row, Array *out, Array *packed, int a_turned, int b_turned, long batch,
                               long rows, long steps, long columns) {
    rl::multiply_all<rl::Dots>("product", a, b, row, out, packed, a_turned, b_turned, batch, rows, steps, columns);
}

RL_EXPORT void rl_attention_bf16(Array *q, Array *k, Array *v, Array *mask, Array *out, Array *lse, int causal, double scale) {
    rl::attend_all<rl::Dots>(q, k, v, mask, out, lse, causal, scale);
}

RL_EXPORT void rl_attention_backward_bf16(Array *g, Array *q, Array *k, Array *v, Array *mask, Array *lse, Array *gq, Array *gk,
                                          Array *gv, int causal, double scale) {
    rl::attend_backward_all<rl::Dots>(g, q, k, v, mask, lse, gq, gk, gv, causal, scale);
}
#endif
