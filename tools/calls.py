"""Calls that reach every primitive operator: what vmap is compared with a loop on.

Names in a call: x, y, z (2, 3, 4) in (0.2, 0.9); v, w (4,); s () ; a (3, 4), b (4, 5), c (4, 3); p (3, 3) positive
definite; q (2, 3, 3) well conditioned; h (2, 4, 6, 6) images, k (4, 2, 3, 3) a kernel of two groups; n (3, 4) integers
below 3; r (4,) integers below 3; t (2, 3, 4) truth values; T torch, F torch.nn.functional, L torch.linalg, S torch.special,
X torch.fft.
"""

from __future__ import annotations

POINTWISE = [
    *(f"T.{name}(x)" for name in (
        "abs acos acosh angle asin asinh atan atanh ceil conj_physical cos cosh deg2rad digamma erf erfc erfinv "
        "exp exp2 expm1 floor frac isfinite isinf isnan isneginf isposinf isreal lgamma log log10 log1p log2 logical_not "
        "logit nan_to_num neg rad2deg reciprocal round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh "
        "trunc real clone").split()),
    *(f"S.{name}(x)" for name in (
        "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 entr erfcx i0e i1 i1e log_ndtr modified_bessel_k0 "
        "modified_bessel_k1 ndtr ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 i0").split()),
    *(f"S.{name}(x, r)" for name in (
        "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h "
        "hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t "
        "shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w").split()),
    *(f"T.{name}(x, v)" for name in (
        "add sub mul div atan2 copysign eq ne lt le gt ge floor_divide fmax fmin fmod heaviside hypot igamma igammac isclose "
        "logaddexp logaddexp2 logical_and logical_or logical_xor maximum minimum nextafter pow remainder xlogy rsub").split()),
    "S.xlog1py(x, v)", "S.zeta(x + 1.5, v)", "x - s", "2.0 / x", "2.0 ** x", "s * x", "x + 1j * y", "T.polygamma(1, x)",
    "T.mvlgamma(x + 2, 2)", "T.div(x, v, rounding_mode='floor')", "T.div(x, v, rounding_mode='trunc')", "x.clamp(0.3, 0.6)",
    "x.clamp(min=y, max=z)", "T.where(t, x, y)", "T.lerp(x, y, z)", "T.lerp(x, y, 0.3)", "T.add(x, y, alpha=2)",
    "T.addcmul(x, y, z, value=0.5)", "T.addcdiv(x, y, z, value=0.5)", "T.complex(x, y)", "T.polar(x, y)", "T.gcd(n, n + 1)",
    "T.lcm(n, n + 1)", "T.ldexp(x, r)", "n & 1", "n | 1", "n ^ 1", "n << 1", "n >> 1", "T.bitwise_and(n, r)", "T.bitwise_not(n)", "~t", "T.imag(T.complex(x, y))", "T.frexp(x)", "x.to(T.float32)",
    "T.view_as_real(T.complex(x, y))", "T.view_as_complex(x.unflatten(-1, (2, 2)))", "x.view(T.int64)", "T.fill(x, 2.0)",
    "T.fill(x, s)", "x.clone().fill_(3.0)", "x.clone().fill_(s)", "x.masked_fill(t, 2.0)", "x.masked_fill(t, s)",
    "x.clone().copy_(y)", "x.clone().zero_()", "x.contiguous()", "x.logit(0.3)",
]  # fmt: skip

ACTIVATIONS = [
    *(f"F.{name}(x - 0.5)" for name in (
        "relu relu6 gelu silu mish softplus softsign tanhshrink logsigmoid elu selu celu leaky_relu hardshrink softshrink "
        "hardsigmoid hardswish hardtanh").split()),
    "F.gelu(x, approximate='tanh')", "F.threshold(x, 0.5, 0.1)", "F.glu(x, -1)", "F.prelu(x - 0.5, s)",
    "F.prelu(x - 0.5, T.stack([s, s * 2, s * 3]))", "F.rrelu(x - 0.5, 0.1, 0.1, training=True)", "F.softmax(x, 1)",
    "F.log_softmax(x, -1)", "F.dropout(x, 1.0)", "F.alpha_dropout(x, 1.0, True)", "F.dropout2d(h, 1.0)", "F.leaky_relu(x, -0.2)",
    "T.fake_quantize_per_tensor_affine(x, 0.1, 2, 0, 8)", "T.fake_quantize_per_channel_affine(x, T.full((3,), 0.1), T.ones(3), 1, 0, 8)",
    "T.fake_quantize_per_tensor_affine(x, T.tensor(0.1), T.tensor(2), 0, 8)",
    "F.elu(x - 0.5, -0.7)", "F.normalize(x, dim=1)", "F.softmin(x, 0)",
]  # fmt: skip

ALONG = [
    "x.sum()", "x.sum(1)", "x.sum((0, -1), keepdim=True)", "x.mean()", "x.mean(-1)", "x.prod()", "x.prod(1, True)", "s.sum(0)",
    "x.nansum(1)", "x.nanmean(1)", "x.amax((0, 2))", "x.amin(1, True)", "x.max()", "x.min()", "x.max(1)", "x.min(-1, True)",
    "x.argmax()", "x.argmax(1)", "x.argmin(None, True)", "x.all(1)", "x.any()", "x.count_nonzero(1)", "T.hash_tensor(x)",
    "x.var()", "x.std(1)", "x.var((0, 1), keepdim=True)", "T.var_mean(x, 1)", "T.std_mean(x, 1)",
    "x.logsumexp(1)", "x.norm()", "x.norm(3, 1)",
    "x.norm(1)", "L.vector_norm(x, float('inf'), 1)", "x.cumsum(1)", "x.cumprod(-1)", "x.cummax(1)", "x.cummin(0)",
    "x.logcumsumexp(2)", "x.sort(1)", "x.sort(-1, descending=True)", "x.argsort(1)", "x.topk(2, 1)", "x.kthvalue(2, 1)",
    "x.median()", "x.median(1)", "x.nanmedian(1)", "x.mode(1)", "x.flip((0, 2))", "x.flip(())", "x.roll(1, 1)", "x.roll(3)",
    "x.rot90(1, (0, 1))", "T.diff(x, dim=1)", "T.cosine_similarity(x, v, -1)", "x.quantile(0.3, 1)", "x.renorm(2, 0, 1.0)",
    "s.softmax(0)", "s.cumsum(-1)", "s.max(0)", "s.sort(0)", "T.aminmax(x, dim=1)", "x.cov() if x.ndim == 2 else a.cov()",
    "T.trapezoid(x, dim=1)",
]  # fmt: skip

VIEWS = [
    "x.reshape(6, 4)", "x.reshape(-1)", "x.view(2, 12)", "x.permute(2, 0, 1)", "x.transpose(0, -1)", "x.mT", "x[1]", "x[:, 1:]",
    "x[..., None, 2]", "x[:, ::2]", "x.select(1, 2)", "x.narrow(2, 1, 2)", "x.unsqueeze(1)", "x[:1].squeeze(0)", "x.expand(5, 2, 3, 4)",
    "s.expand(3, 2)", "x.expand_as(x)", "x.flatten(1)", "x.split(2, 1)", "x.chunk(2, -1)", "x.unbind(1)", "x.unfold(1, 2, 1)",
    "x.diagonal(0, 1, 2)", "x.diagonal(-1)", "T.diag_embed(x)", "x.tril()", "x.triu(1)", "x.repeat(2, 1, 3)", "s.repeat(3)",
    "x.tile(2)", "x.movedim(0, 2)", "x.as_strided((2, 3), (1, 2), 1)", "T.as_strided_scatter(x, a[:2, :3], (2, 3), (1, 2), 1)",
    "x.slice_scatter(y[:, :1], 1, 1, 2)", "x.select_scatter(y[0], 0, 1)", "x.diagonal_scatter(y.diagonal(0, 1, 2), 0, 1, 2)",
    "T.cat([x, y, z], 1)", "T.stack([x, y], -1)", "T.cat([s.reshape(1), v])", "T.hstack([x, y])", "T.block_diag(a, b, s)",
    "T.broadcast_to(v, (3, 4))", "T.meshgrid(v, w, indexing='ij')", "F.pad(x, (1, 2))", "F.pad(x, (1, 2), value=3.0)",
    "F.pad(x, (1, 2), mode='reflect')", "F.pad(x, (1, 1), mode='circular')", "x.sum_to_size(1, 3, 1)", "x.ravel()",
]  # fmt: skip

INDEXING = [
    "x[n[:, 0] % 2]", "x[:, r[:3]]", "x[:, :, r]", "x[r % 2, r]", "x[r % 2, :, r]", "x[n % 2, n]", "x[:, n]", "x[None, r % 2]",
    "x.index_select(1, r)", "x.index_add(1, r[:3], y)", "x.index_add(1, r[:3], y, alpha=2)", "x.index_copy(1, r[:1], y[:, :1])",
    "x.index_fill(1, r, 2.0)", "x.index_fill(1, r, s)", "x.gather(0, (n % 2)[None])", "a.gather(0, n)", "a.scatter(0, n % 3, c.mT)",
    "a.scatter(0, n, 2.0)", "a.scatter_add(0, n, c.mT)", "a.scatter_reduce(0, n, c.mT, 'amax')", "a.scatter_reduce(0, n, c.mT, 'mean')",
    "T.take(x, n)", "T.take_along_dim(a, n, 0)", "x.put(n, c.mT, accumulate=True)", "x.index_put((r % 2, r), w, accumulate=True)",
    "x.index_put((r[:1] % 2,), y[:1])", "F.embedding(n, c)", "F.embedding(n, c, padding_idx=1)", "F.one_hot(n, 3)",
    "x.masked_scatter(t, y)", "T.masked_select(x, T.ones(4, dtype=T.bool))", "T.searchsorted(v.sort()[0], x)", "T.bucketize(x, v.sort()[0])",
    "T.isin(n, r)", "F.embedding_bag(n, c)", "F.embedding_bag(n, c, mode='max')", "x.repeat_interleave(2, 1)",
    "x.index_reduce(1, r[:3], y, 'prod')", "T.poisson(x * 0)", "T.normal(x, s * 0)",
]  # fmt: skip

MATRICES = [
    "a @ b", "T.mm(a, b)", "T.bmm(q, q)", "x @ b", "a @ v", "T.mv(a, v)", "T.dot(v, w)", "T.outer(v, w)", "T.addmm(p, a, c)",
    "T.addmm(p, a, c, beta=0, alpha=2)", "T.addmv(v[:3], a, v)", "T.baddbmm(q, x, y.mT)", "T.addbmm(p, x, y.mT)", "F.linear(x, b.mT)",
    "F.linear(x, b.mT, b[0])", "F.linear(v, b.mT, b[0])", "T.einsum('ijk,kl->ilj', x, b)", "T.einsum('ijk,ijk->j', x, y)",
    "T.lstm_cell(a, (a, a.cos()), x.reshape(6, 4).repeat(3, 1)[:16], y.reshape(6, 4).repeat(3, 1)[:16])",
    "T.tensordot(x, b, 1)", "F.bilinear(a, c.mT, T.stack([b[:, :4], b[:, 1:]]), v[:2])", "T.kron(a, p)", "L.inv(q)", "L.det(q)",
    "L.slogdet(q)", "L.solve(q, x)", "L.cholesky(p)", "T.cholesky_solve(a[:3, :2], L.cholesky(p))", "L.lu(q).U", "L.lu_factor(q).LU", "L.lu_solve(*L.lu_factor(q), q)", "T.geqrf(q.detach())", "L.ldl_factor(p.detach()).LD", "L.ldl_solve(*L.ldl_factor(p.detach()), p.detach())", "T.cholesky_inverse(p)", "L.cholesky_ex(p).L", "L.inv_ex(q).info", "L.qr(q).R", "L.svdvals(q)", "L.eigvalsh(p)",
    "L.eigh(p).eigenvalues", "L.pinv(q)", "L.matrix_rank(q)", "L.matrix_norm(q)", "L.matrix_exp(q)", "L.matrix_power(q, 3)",
    "T.cdist(x, y)", "T.cdist(x, y, p=1.0)", "T.cdist(x, y, p=3.0)", "F.pdist(a)", "T.linalg.eigvals(p).real", "L.lstsq(a.mT, c).solution",
    "T.cross(x[..., :3], y[..., :3], dim=-1)", "T.trace(p)", "L.multi_dot([a, b, b.mT])",
]  # fmt: skip

LAYERS = [
    "F.conv2d(h, k, None, 1, 1, 1, 2)", "F.conv2d(h, k[:, :1], v, 2, 0, 1, 4)", "F.conv1d(x, c[:, :3, None])", "F.conv2d(h[0], k, v, groups=2)",
    "F.conv_transpose2d(h, k, None, 2)", "F.conv_transpose2d(h, k, v[:2], 1, 1)", "F.conv3d(h[:, :, None], k[:, :, None], groups=2)",
    "F.max_pool2d(h, 2)", "F.max_pool2d(h, 3, 2, 1, return_indices=True)", "F.max_pool1d(h[0], 2)", "F.avg_pool2d(h, 2)",
    "F.avg_pool2d(h, 3, 1, 1, count_include_pad=False)", "F.adaptive_avg_pool2d(h, 3)", "F.adaptive_max_pool2d(h, 4)", "F.lp_pool2d(h, 2.0, 2)",
    "F.max_unpool2d(*F.max_pool2d(h, 2, return_indices=True), 2)", "F.interpolate(h, scale_factor=2)",
    "F.interpolate(h, size=4, mode='bilinear')", "F.interpolate(h, size=9, mode='bicubic')", "F.unfold(h, 2)", "F.fold(F.unfold(h, 2), (6, 6), 2)",
    "F.affine_grid(x[:, :2, :3], [2, 1, 4, 5], align_corners=False)",
    "F.pixel_shuffle(h, 2)", "F.grid_sample(h, h[..., :2].permute(0, 2, 3, 1)[..., :2] * 2 - 1, align_corners=False)",
    "F.grid_sample(h, h[..., :2].permute(0, 2, 3, 1)[..., :2] * 2 - 1, mode='nearest', align_corners=False)",
    "F.grid_sample(h, h[..., :2].permute(0, 2, 3, 1)[..., :2] * 2 - 1, mode='bicubic', align_corners=False)",
    "F.layer_norm(x, (4,))", "F.layer_norm(x, (4,), v, w)", "F.layer_norm(x, (3, 4), a, c.mT)", "F.rms_norm(x, (4,), v)", "F.rms_norm(x, (4,))",
    "F.group_norm(h, 2)", "F.group_norm(h, 2, v, w)", "F.batch_norm(h, None, None, training=True)", "F.batch_norm(h, v.detach(), w.detach(), w, v)",
    "F.batch_norm(h, None, None, v, w, True)", "F.instance_norm(h)", "F.local_response_norm(h, 2)",
    "F.scaled_dot_product_attention(x, y, z)", "F.scaled_dot_product_attention(x, y, z, is_causal=True)",
    "F.scaled_dot_product_attention(x, y, z, x @ y.mT)", "F.scaled_dot_product_attention(x, y, z, (x @ y.mT) > 1.2)",
    "X.fft(x, dim=1)", "X.fft2(x)", "X.ifft(x)", "X.rfft(x)", "X.irfft(x)", "X.hfft(x)", "X.fftshift(x, 1)",
    "F.fractional_max_pool2d(h, 2, 3, _random_samples=h[:, :, 0, :2])",
]  # fmt: skip

LOSSES = [
    *(f"F.{name}(x, y{more})" for name in (
        "mse_loss l1_loss huber_loss smooth_l1_loss soft_margin_loss binary_cross_entropy "
        "binary_cross_entropy_with_logits poisson_nll_loss").split() for more in ("", ", reduction='none'", ", reduction='sum'")),
    "F.binary_cross_entropy(x, y, z.detach())", "F.binary_cross_entropy_with_logits(x, y, pos_weight=v)", "F.kl_div(x, y, log_target=True, reduction='sum')", "F.kl_div(x, y, reduction='batchmean')",
    "F.cross_entropy(c, r)", "F.cross_entropy(c, r, reduction='none')", "F.cross_entropy(c, r, v[:3].detach(), reduction='sum')",
    "F.cross_entropy(c, r, v[:3].detach(), label_smoothing=0.2)", "F.cross_entropy(c, r, ignore_index=1)", "F.cross_entropy(x, n[:2] % 3)",
    "F.cross_entropy(c, a.mT.softmax(1))", "F.nll_loss(c, r)", "F.nll_loss(c, r, v[:3].detach())", "F.nll_loss(c, r, ignore_index=1, reduction='sum')",
    "F.multi_margin_loss(c, r)", "F.hinge_embedding_loss(x, y.sign())", "F.triplet_margin_loss(a, c.mT, a * 0.5)",
    "F.gaussian_nll_loss(x, y, z)", "F.multilabel_margin_loss(c, r[:, None].expand(4, 3))", "F.cosine_embedding_loss(a, c.mT, v[:3].sign())",
    "F.ctc_loss(T.log_softmax(x.permute(2, 0, 1), -1), T.ones(2, 2, dtype=T.int64), (4, 4), (2, 1))",
    "F.linear_cross_entropy(a.mT, p, r)", "F.margin_ranking_loss(x, y, z.sign())",
]  # fmt: skip

FAMILIES = {"pointwise": POINTWISE, "activations": ACTIVATIONS, "along": ALONG, "views": VIEWS, "indexing": INDEXING,
            "matrices": MATRICES, "layers": LAYERS, "losses": LOSSES}  # fmt: skip
CALLS = [call for calls in FAMILIES.values() for call in calls]
