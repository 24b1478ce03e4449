"""Imported, it has ``torch`` be rushlight in this process: what a server of `multiprocessing` loads first."""

from rushlight.compat.children import resolve

resolve()
