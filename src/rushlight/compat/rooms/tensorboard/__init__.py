"""``torch.utils.tensorboard``: writes what TensorBoard shows, by the package tensorboard, which has to be installed."""

from rushlight.compat.rooms.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
