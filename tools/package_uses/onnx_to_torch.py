"""A network read from ONNX's form into modules of a graph, then trained on"""

import numpy
import same
from onnx import TensorProto, helper, numpy_helper
from onnx2torch import convert

made = {
    "k": same.data(4, 2, 3, 3, seed=1) * 0.3, "kb": same.data(4, seed=2), "scale": same.data(4, seed=3).abs(), "shift": same.data(4, seed=4),
    "mean": same.data(4, seed=5), "var": same.data(4, seed=6).abs() + 0.5, "w": same.data(36, 5, seed=7) * 0.3, "wb": same.data(5, seed=8),
    "q": same.data(5, 5, seed=9),
}  # fmt: skip
constants = [numpy_helper.from_array(value.numpy(), name) for name, value in made.items()]
constants.append(numpy_helper.from_array(numpy.array([0, -1], dtype=numpy.int64), "flat"))
constants.append(numpy_helper.from_array(numpy.array([1], dtype=numpy.int64), "one"))
nodes = [
    helper.make_node("Conv", ["x", "k", "kb"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"]),
    helper.make_node("LeakyRelu", ["n"], ["r"], alpha=0.1),
    helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node("Reshape", ["p", "flat"], ["f"]),
    helper.make_node("Gemm", ["f", "w", "wb"], ["g"], alpha=0.5),
    helper.make_node("MatMul", ["g", "q"], ["m"]),
    helper.make_node("Softmax", ["m"], ["s"], axis=1),
    helper.make_node("Mul", ["s", "g"], ["sg"]),
    helper.make_node("Concat", ["sg", "g"], ["cat"], axis=1),
    helper.make_node("ReduceMean", ["cat"], ["mean_of"], axes=[1], keepdims=1),
    helper.make_node("Sub", ["cat", "mean_of"], ["centred"]),
    helper.make_node("Erf", ["centred"], ["e"]),
    helper.make_node("Transpose", ["e"], ["t"], perm=[1, 0]),
    helper.make_node("Slice", ["t", "one", "flat_end"], ["y"]),
]
constants.append(numpy_helper.from_array(numpy.array([8], dtype=numpy.int64), "flat_end"))
graph = helper.make_graph(
    nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 2, 6, 6])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)  # fmt: skip
model = convert(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]))
x = same.data(3, 2, 6, 6)
numbers = [len(list(model.graph.nodes)), len(list(model.parameters())), model.eval()(x).sum().item()]
model.train()
numbers += same.train(model, lambda m: (m(x) - 0.2).square().mean(), 5, 0.05)
numbers += [p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None]

same.report(numbers)
