"""What tensor classes with `__torch_dispatch__` are asked, by PyTorch and here: names, arguments, and what comes of the answers."""

from __future__ import annotations

import importlib
import operator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

# Calls of which forward and backward ask the same; whose forward does, while gradients are computed by other operators; and
# whose values and gradients are the same, by operators of which PyTorch has others.
BOTH = """
x+y; x-y; x*y; x+2; x*2.5; 2-x; x-1; x/2; x%2; -x; abs(x); x==y; x==1; x<y; x<0; x>0; x>=y; x!=0;
torch.rsub(x,y); p.log(); x.exp(); x.sin(); x.tanh(); x.sigmoid(); x.relu(); x.sign(); x.floor(); x.round();
x.trunc(); x.frac(); x.isnan(); x.isinf(); x.logical_not(); m&m; m|m; m^m; ~m;
torch.remainder(x,2); x.neg(); x.positive(); x.sum(); x.sum(0); x.sum((0,1)); x.sum(1,keepdim=True); x.argmax();
x.argmax(1); x.argmin(1,True); x.all(); m.all(); m.any(1); x.any(); x.count_nonzero(); x.view(4,3); x.reshape(2,6);
x.t(); x.T; x.transpose(0,1); x.permute(1,0); x.unsqueeze(0); x.expand(2,3,4); x.flatten(); x[0]; x[:,1]; x[1:];
x[:,1:3]; x[1:,::2]; x[None]; x[...,0]; x[-1]; x[0,1]; x.select(1,0); x.narrow(1,0,2); x.split(2,1);
x.split([1,3],1); x.chunk(2,1); x.unbind(0); torch.cat([x,y]); torch.cat([x,y],1); torch.stack([x,y]);
torch.stack([x,y],1); torch.hstack([x,y]); torch.vstack([x,y]); x.flip(0); x.roll(1,0); x.tril(); x.triu(1);
x.scatter(1,i,y); x.scatter_add(1,i,y); x.movedim(0,1); x.swapaxes(0,1); x.unflatten(1,(2,2)); x.view_as(y);
x.expand_as(y); x.contiguous(); x.t().contiguous(); x.clone(); x.detach(); x.data; x.new_zeros(2); x.new_ones((2,3));
x.new_empty(2).shape; x.new_full((2,),3.); torch.zeros_like(x); torch.ones_like(x); torch.empty_like(x).shape;
torch.full_like(x,2.); torch.rand_like(x).shape; torch.randn_like(x).shape; x.float(); x.to("cpu"); x.to(x);
x.type_as(y); x.bool(); x.int(); x.cpu(); x.nonzero(); torch.broadcast_to(x,(2,3,4)); torch.block_diag(x,y);
torch.bucketize(x,y[0]); torch.allclose(x,x); torch.equal(x,y); x@y.t(); torch.mm(x,y.t()); torch.dot(x[0],y[0]);
torch.bmm(x3,x3); F.linear(x,w); F.relu(x); F.gelu(x); F.gelu(x,approximate="tanh"); F.silu(x); F.mish(x);
F.softplus(x); F.selu(x); F.leaky_relu(x,.1); F.relu6(x); F.hardsigmoid(x); F.hardswish(x); F.logsigmoid(x);
F.tanhshrink(x); F.softshrink(x); F.hardshrink(x); F.threshold(x,.1,0.); F.softmax(x,1); F.log_softmax(x,1);
F.softmin(x,1); F.layer_norm(x,(4,)); F.layer_norm(x,(4,),y[0],y[1]); F.dropout(x,.5,False); F.dropout(x,0.,True);
F.embedding(i1,x); F.mse_loss(x,y); F.mse_loss(x,y,reduction="sum"); F.smooth_l1_loss(x,y); F.huber_loss(x,y);
F.cross_entropy(x,i1); F.nll_loss(x,i1); x.clone().add_(y); x.clone().sub_(1); x.clone().mul_(2); x.clone().exp_();
x.clone().neg_(); x.clone().scatter_(1,i,y); x.clone().tril_(); x.clone().normal_().shape;
x.clone().uniform_().shape; x.clone().requires_grad_(); x.clone().detach_(); iadd(x.clone(),y); imul(x.clone(),2);
x.clone().bernoulli_(.5).shape; x.clone().floor_(); x.clone().round_(); x.clone().data.mul_(2); int(x.sum());
bool(x.sum()); len(x); x.shape; x.dtype; x.numel(); x.dim(); x.stride(); x.is_contiguous(); x.storage_offset();
x.element_size(); x.is_floating_point(); x.size(0); x.device; x.layout; x.requires_grad; list(x)[0].shape;
str(type(x)); x.is_leaf; x.grad_fn; x.is_cuda; x.tolist(); x.numpy(); x.data_ptr(); x.nbytes; x._version;
x.clone()._version; isinstance(x,torch.Tensor); torch.is_tensor(x); x.is_sparse; 1.0 in x;
x.index_select(0,i1).shape; np.asarray(x)
"""
FORWARD = """
x/y; 2/x; x**2; x**y; 2**x; x%y; torch.add(x,y,alpha=2); torch.addcmul(x,y,y,value=.5); torch.addcdiv(x,y,p);
x.pow(3); torch.pow(2,x); x.sqrt(); p.sqrt(); p.rsqrt(); x.square(); x.reciprocal(); x.erf(); x.log1p(); x.expm1();
x.clamp(-1,1); x.clamp(min=0); x.clamp(max=1); x.clamp(y,p); torch.maximum(x,y); torch.minimum(x,y); torch.fmax(x,y);
torch.where(m,x,y); torch.where(x>0,x,y); torch.atan2(x,y); torch.hypot(x,y); torch.lerp(x,y,.3); torch.lerp(x,y,p);
x.nan_to_num(); torch.logaddexp(x,y); torch.xlogy(x,p); x.logit(1e-6); torch.div(x,y,rounding_mode="floor");
torch.div(x,2,rounding_mode="trunc"); torch.fmod(x,y); torch.true_divide(x,y); x.rad2deg(); x.mean(); x.mean(1);
x.mean((0,1),True); x.prod(1); x.max(); x.max(1); x.min(0); x.amax(1); x.amin((0,1)); x.amax(); x.std(); x.var(1);
x.var(1,unbiased=False); torch.var_mean(x,1); x.norm(2,1); torch.linalg.vector_norm(x,2,1); x.logsumexp(1);
x.cumsum(1); x.sort(); x.sort(0,descending=True); x.topk(2); x.median(); x.median(1); x.kthvalue(2); x.nansum();
x.aminmax(); torch.std_mean(x); x.cummax(1); x.unsqueeze(0).squeeze(0); x[i1]; x[m]; x[:,i1]; x[i1,i1];
x.repeat(2,1); x.tile((2,)); x.diagonal(); x.gather(1,i); x.index_select(0,i1); x.index_add(0,i1,y);
x.masked_select(m); x.as_strided((2,2),(1,2)); x.to(torch.float64); x.double(); x.half(); torch.matmul(x,y[0]);
torch.mv(x,y[0]); torch.addmm(b5,x,w.t()); torch.addmm(b5,x,w.t(),beta=.5,alpha=2); torch.linalg.qr(s);
F.linear(x,w,b5); F.linear(x3,w4,b5); F.softsign(x); F.glu(x); F.prelu(x,b1); F.group_norm(img,3);
F.batch_norm(x,b4,p4,training=False); F.conv2d(img,k); F.conv2d(img,k,padding=1,stride=2); F.conv1d(x3,x3w);
F.conv_transpose2d(img,kt); F.max_pool2d(img,2); F.pad(x,(1,1)); F.unfold(img,2); F.l1_loss(x,y);
F.binary_cross_entropy(sg,tg); F.binary_cross_entropy_with_logits(x,tg); F.scaled_dot_product_attention(q,q,q);
F.scaled_dot_product_attention(q,q,q,is_causal=True); F.soft_margin_loss(x,sgn); x.clone().add_(y,alpha=2);
x.clone().div_(y); x.clone().zero_(); x.clone().fill_(3.); x.clone().copy_(y); x.clone().clamp_(0,1);
x.clone().relu_(); x.clone().sigmoid_(); x.clone().addcmul_(y,y,value=.1); x.clone().addcdiv_(y,p);
x.clone().lerp_(y,.5); x.clone().sqrt_(); x.clone().index_add_(0,i1,y);
x.clone().index_copy_(0,i1,y); x.clone().index_put_((i1,),y); setitem(x.clone(),0,y[0]); setitem(x.clone(),m,0.);
setitem(x.clone(),i1,y); setitem(x.clone(),(slice(None),0),y[:,0]); x.clone().masked_scatter_(m,y)
"""
VALUES = """
torch.sub(x,y,alpha=2); x.clamp_min(0); torch.where(m,x,0.); x.isfinite(); x.sum(dtype=torch.float64); x.prod();
x.norm(); torch.linalg.norm(x); x.argsort(); x.mode(1); x.view(-1); x.t().reshape(12); x.mT; x.unsqueeze(-1);
x.unsqueeze(0).squeeze(); x.squeeze(0); x.diag(); x.scatter(1,i,0.); x.masked_fill(m,0.);
torch.take_along_dim(x,i,1); x.unfold(1,2,1); x.to(torch.float32,copy=True); x.repeat_interleave(2,0);
x.tensor_split(2,1); x.ravel(); x.rot90(); torch.kron(x,y); torch.isclose(x,y); torch.outer(x[0],y[0]); x3@x3; x3@x4;
torch.einsum("ij,kj->ik",x,w); torch.einsum("bij,bjk->bik",x3,x3); torch.baddbmm(x3,x3,x3); torch.inner(x,y);
torch.addmv(b3,x,y[0]); torch.cdist(x,y); torch.linalg.inv(s); torch.linalg.det(s); torch.linalg.cholesky(s);
torch.linalg.solve(s,s); torch.trace(s); torch.linalg.svd(s); torch.tensordot(x,y,2); torch.addr(x,b3,y[0]);
F.linear(x3,w4); F.elu(x); F.celu(x); F.hardtanh(x); x.softmax(-1); F.softmax(x,1,dtype=torch.float64);
F.rms_norm(x,(4,)); F.batch_norm(img,None,None,training=True); F.instance_norm(img); F.normalize(x); F.one_hot(i1,4);
F.avg_pool2d(img,2); F.adaptive_avg_pool2d(img,1); F.adaptive_avg_pool2d(img,2); F.interpolate(img,scale_factor=2);
F.interpolate(img,size=4,mode="bilinear"); F.pad(x3,(1,1),mode="reflect"); F.pixel_shuffle(k4,2);
F.cross_entropy(x,i1,label_smoothing=.1); F.kl_div(x,y); F.cosine_similarity(x,y); F.bilinear(x,y,bw);
F.hinge_embedding_loss(x,sgn); F.margin_ranking_loss(x,y,sgn); F.triplet_margin_loss(x,y,p);
F.pairwise_distance(x,y); F.local_response_norm(img,2); F.gaussian_nll_loss(x,y,p); F.poisson_nll_loss(x,p);
x.clone().pow_(2); x.clone().masked_fill_(m,0.); x.clone().index_fill_(0,i1,0.); setitem(x.clone(),slice(1,None),0.);
x.clone().addmm_(s34,s)
"""


def listed(text: str) -> list[str]:
    """The calls in a text."""
    return text.strip().replace("\n", " ").split("; ")


class Side:
    """One of the libraries: a class of its tensors that writes down what it is asked, and tensors of it."""

    def __init__(self, torch: Any):
        name = torch.__name__
        tree_map = importlib.import_module(f"{name}.utils._pytree").tree_map
        self.torch, self.log, side = torch, [], self

        class Logged(torch.Tensor):  # type: ignore[misc,name-defined]
            @staticmethod
            def __new__(cls: Any, elem: Any, requires_grad: bool = False) -> Any:
                made = torch.Tensor._make_wrapper_subclass(
                    cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
                    layout=elem.layout, device=elem.device, requires_grad=requires_grad,
                )  # fmt: skip
                made.elem = elem
                return made

            __torch_function__ = torch._C._disabled_torch_function_impl

            def __repr__(self) -> str:
                return "Logged"

            @classmethod
            def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                given = [side.shown(x) for x in args] + [f"{k}={side.shown(v)}" for k, v in (kwargs or {}).items()]
                side.log.append(f"{func}({', '.join(given)})")
                plain = tree_map(lambda x: x.elem if isinstance(x, cls) else x, (tuple(args), kwargs or {}))
                out = func(*plain[0], **plain[1])
                if func._opname.endswith("_") and not func._opname.endswith("__"):
                    return args[0]
                return tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, out)

        self.kind = Logged

    def shown(self, x: Any) -> str:
        """An argument in words that are the same in both."""
        if isinstance(x, self.torch.Tensor):
            return (
                f"{'logged' if isinstance(x, self.kind) else 'plain'} {str(x.dtype).partition('.')[2]}{list(x.shape)}"
            )
        if isinstance(x, (list, tuple)):
            return f"[{', '.join(map(self.shown, x))}]"
        return f"{x:.6g}" if isinstance(x, float) else str(x).replace("rushlight", "torch")

    def value(self, x: Any) -> Any:
        """A result as arrays."""
        if isinstance(x, self.kind):
            return "logged", x.elem.detach().resolve_conj().numpy()
        if isinstance(x, self.torch.Tensor):
            return "plain", x.detach().numpy()
        if isinstance(x, (list, tuple)):
            return [self.value(item) for item in x]
        return x if isinstance(x, (bool, int, float)) else str(x).replace("rushlight", "torch").partition(" at 0x")[0]

    def names(self, grads: bool) -> dict[str, Any]:
        """What the calls name."""
        draw, torch = np.random.RandomState(0), self.torch

        def real(*shape: int) -> Any:
            return draw.randn(*shape).astype(np.float32)

        def logged(array: Any) -> Any:
            tensor = torch.tensor(array)
            return self.kind(tensor, requires_grad=grads and tensor.is_floating_point())

        shapes = {"x": (3, 4), "y": (3, 4), "w": (5, 4), "b5": (5,), "b3": (3,), "b1": (1,), "img": (2, 3, 8, 8), "k": (4, 3, 3, 3),
                  "kt": (3, 2, 2, 2), "k4": (1, 4, 2, 2), "x3": (2, 3, 3), "x4": (3, 3), "w4": (5, 3), "s34": (3, 4), "bw": (2, 4, 4),
                  "q": (1, 2, 4, 8), "x3w": (2, 3, 2), "b4": (4,)}  # fmt: skip
        found = {name: logged(real(*shape)) for name, shape in shapes.items()}
        square = real(4, 4)
        constant = self.torch.tensor
        found |= {"p": logged(abs(real(3, 4)) + 0.1), "p4": logged(abs(real(4)) + 0.1), "tg": self.kind(constant(draw.rand(3, 4).astype("f"))),
                  "sg": logged(draw.rand(3, 4).astype("f")), "sgn": self.kind(constant(np.sign(real(3, 4)))), "m": logged(real(3, 4) > 0),
                  "s": logged(square @ square.T + 4 * np.eye(4, dtype="f")), "i1": logged(np.array([0, 2, 1])),
                  "i": logged(draw.randint(0, 3, (3, 4)))}  # fmt: skip
        functional = importlib.import_module(f"{torch.__name__}.nn.functional")
        return found | {
            "torch": torch,
            "F": functional,
            "np": np,
            "setitem": setitem,
            "iadd": operator.iadd,
            "imul": operator.imul,
        }

    def run(self, call: str, grads: bool) -> Any:
        """The log, the result and the gradients of a call: of its backward, or of its forward alone."""
        names = self.names(grads)
        self.log.clear()
        try:
            result = eval(call, names)
        except (RuntimeError, TypeError) as error:
            return list(self.log), type(error).__mro__[-3:-1]
        if not grads:
            return list(self.log), self.value(result)
        roots = [
            t for t in (result if isinstance(result, (list, tuple)) else [result]) if isinstance(t, self.torch.Tensor)
        ]
        roots = [t for t in roots if t.requires_grad and t.is_floating_point()]
        self.log.clear()
        if not roots:
            return [], None
        ones = [self.kind(self.torch.ones(t.shape, dtype=t.dtype) * 1.5) for t in roots]
        self.torch.autograd.backward(roots, ones)
        leaves = {name: x for name, x in names.items() if isinstance(x, self.kind) and x.grad is not None}
        return list(self.log), [(name, self.value(x.grad)) for name, x in leaves.items()]


def setitem(x: Any, index: Any, value: Any) -> Any:
    """x, of which a part has been written."""
    x[index] = value
    return x


@pytest.fixture(scope="module")
def sides() -> Any:
    return SimpleNamespace(theirs=Side(torch), ours=Side(rushlight))


def alike(ours: Any, theirs: Any) -> None:
    """Fail where two results differ."""
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            alike(a, b)
    elif isinstance(theirs, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    else:
        assert ours == theirs


@pytest.mark.parametrize("call", listed(BOTH) + listed(FORWARD) + listed(VALUES))
def test_values_and_gradients_are_the_same(sides: Any, call: str) -> None:
    for grads in (False, True):
        ours, theirs = sides.ours.run(call, grads)[1], sides.theirs.run(call, grads)[1]
        alike(ours, theirs)


@pytest.mark.parametrize("call", listed(BOTH) + listed(FORWARD))
def test_forward_asks_the_same_of_the_class(sides: Any, call: str) -> None:
    assert sides.ours.run(call, False)[0] == sides.theirs.run(call, False)[0]


@pytest.mark.parametrize("call", listed(BOTH))
def test_backward_asks_the_same_of_the_class(sides: Any, call: str) -> None:
    assert sides.ours.run(call, True)[0] == sides.theirs.run(call, True)[0]
