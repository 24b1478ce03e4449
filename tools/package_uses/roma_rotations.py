"""Rotations as matrices, quaternions, vectors and Euler angles, fitted to points, with gradients"""

import roma
import same
import torch

points = same.data(20, 3).double()
turn = roma.rotvec_to_rotmat(torch.tensor([0.3, -0.5, 0.8]).double())
target = points @ turn.T + torch.tensor([0.1, 0.2, -0.3]).double()
numbers = []


def told(leaf: torch.Tensor, value: torch.Tensor) -> None:
    numbers.append(value.sum().item())
    numbers.extend(torch.autograd.grad(value.sum(), leaf)[0].flatten().tolist())


free = same.data(3, 3, seed=3).double().requires_grad_()
weights = same.data(3, 3, seed=4).double()
told(free, roma.special_procrustes(free) * weights)
told(free, roma.special_gramschmidt(free[:, :2]) * weights)
vector = same.data(5, 3, seed=5).double().requires_grad_()
told(vector, roma.rotvec_to_unitquat(vector) * same.data(5, 4).double())
told(vector, roma.rotmat_to_rotvec(roma.rotvec_to_rotmat(vector)) * same.data(5, 3).double())
told(vector, roma.unitquat_to_euler("xyz", roma.rotvec_to_unitquat(vector * 0.3)) * same.data(5, 3).double())
told(vector, roma.euler_to_rotmat("ZYX", vector, degrees=False) * same.data(5, 3, 3).double())
told(vector, roma.rotmat_geodesic_distance(roma.rotvec_to_rotmat(vector), turn))
quaternions = roma.rotvec_to_unitquat(vector)
told(vector, roma.unitquat_slerp(quaternions[0], quaternions[1], torch.linspace(0, 1, 4).double()))
told(vector, roma.utils.rotvec_geodesic_distance(vector[:2], vector[2:4]))
told(
    vector,
    roma.rotmat_slerp(
        roma.rotvec_to_rotmat(vector[0]), roma.rotvec_to_rotmat(vector[1]), torch.linspace(0, 1, 4).double()
    ),
)
found, shift = roma.rigid_points_registration(points, target)
numbers += [(found - turn).abs().max().item() < 1e-9, *shift.tolist()]
rigid = roma.Rigid(roma.rotvec_to_rotmat(vector), same.data(5, 3, seed=6).double())
told(vector, (rigid @ rigid.inverse() @ rigid).linear * same.data(5, 3, 3).double())
six = same.data(6, seed=7).double().requires_grad_()
optimizer = torch.optim.Adam([six], lr=0.1)
for _ in range(10):
    optimizer.zero_grad()
    loss = (points @ roma.special_gramschmidt(six.view(3, 2)).T - target).square().mean()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
same.report(numbers)
