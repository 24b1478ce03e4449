"""Volumes of medicine: a pipeline of random transforms, patches by a queue, and an image put together from them"""

import same
import torch
import torchio as tio

torch.manual_seed(0)
subjects = [
    tio.Subject(
        image=tio.ScalarImage(tensor=same.data(1, 16, 16, 16, seed=i)),
        mask=tio.LabelMap(tensor=(same.data(1, 16, 16, 16, seed=i + 5) > 0.5).int()),
    )
    for i in range(2)
]
transform = tio.Compose([tio.ToCanonical(), tio.Resample(0.8), tio.CropOrPad(16), tio.ZNormalization(), tio.RandomFlip(axes=(0, 1)), tio.RandomAffine(scales=0.1, degrees=5),
                         tio.RandomNoise(std=0.1), tio.RandomBiasField(), tio.RandomGamma(), tio.RandomBlur(), tio.OneHot(num_classes=2)])  # fmt: skip
dataset = tio.SubjectsDataset(subjects, transform=transform)
numbers = []
for subject in dataset:
    numbers += [subject.image.data.mean().item(), subject.image.data.abs().sum().item(), subject.mask.data.sum().item()]
queue = tio.Queue(
    tio.SubjectsDataset(subjects),
    max_length=8,
    samples_per_volume=4,
    sampler=tio.UniformSampler(8),
    num_workers=0,
    shuffle_subjects=False,
    shuffle_patches=False,
)
for batch in tio.SubjectsLoader(queue, batch_size=4):
    numbers.append(batch["image"][tio.DATA].sum().item())
net = same.weights(torch.nn.Conv3d(1, 1, 3, padding=1))
sampler = tio.GridSampler(subjects[0], patch_size=8, patch_overlap=4)
whole = tio.GridAggregator(sampler, overlap_mode="hann")
with torch.no_grad():
    for patches in tio.SubjectsLoader(sampler, batch_size=4):
        whole.add_batch(net(patches["image"][tio.DATA]), patches[tio.LOCATION])
numbers.append(whole.get_output_tensor().abs().sum().item())
same.report(numbers)
