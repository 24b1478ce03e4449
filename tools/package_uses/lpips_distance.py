"""A perceptual distance of pictures, differentiated."""

import lpips
import same

net = same.weights(lpips.LPIPS(net="squeeze", pretrained=False, pnet_rand=True, verbose=False)).eval()
a, b = same.data(2, 3, 64, 64).clamp(-1, 1).requires_grad_(), same.data(2, 3, 64, 64, seed=1).clamp(-1, 1)
d = net(a, b)
d.sum().backward()
same.report([*d.flatten().tolist(), a.grad.abs().sum().item()])
