// Products of bfloat16 matrices and attention and convolutions, on processors with AVX512-BF16.
#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ >= 10)
#include "attention_pairs.h"
#include "dots.h"

RL_PAIRS(rl::Dots, _bf16)
RL_CONVOLUTIONS(rl::Dots, _bf16)
#endif
