"""Datapipes whose elements have keys."""

from rushlight.utils.data.datapipes.map.pipes import BatcherMapDataPipe as Batcher
from rushlight.utils.data.datapipes.map.pipes import ConcaterMapDataPipe as Concater
from rushlight.utils.data.datapipes.map.pipes import MapperMapDataPipe as Mapper
from rushlight.utils.data.datapipes.map.pipes import SequenceWrapperMapDataPipe as SequenceWrapper
from rushlight.utils.data.datapipes.map.pipes import ShufflerIterDataPipe as Shuffler
from rushlight.utils.data.datapipes.map.pipes import ZipperMapDataPipe as Zipper

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]
