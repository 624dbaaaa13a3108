"""Streams: samples in time."""

from driftline.streams.open_world.class_sizes import ClassSizeLaw
from driftline.streams.open_world.ordered_world import ordered_world, published_world
from driftline.streams.open_world.stream import OpenWorld, open_world
from driftline.streams.order_file import Order, read_order
from driftline.streams.ordered_queries import held_out_sets, ordered_queries
from driftline.streams.prefetch import Prefetched, prefetch
from driftline.streams.refinement import QueryPools, QueryStream, Sources, pools, queries
from driftline.streams.seq_to_final.periods import period_sequence
from driftline.streams.seq_to_final.shifts import ShiftSequence, sequence
from driftline.streams.task_sequence import AllTaskProbes, TaskStream, task_stream
from driftline.streams.test_time.calibration import AccuracyMatrices, read_matrices, write_matrices
from driftline.streams.test_time.image_files import ImageFiles, image_files
from driftline.streams.test_time.ordered_images import OrderedImages, ordered_images
from driftline.streams.test_time.path import corruption_path
from driftline.streams.test_time.stream import CorruptionStream, corruption_stream
from driftline.streams.test_time.webdataset import Shards, shards, write_shards
from driftline.streams.timeline import LaterPeriodProbes, PeriodRange, Periods, periods

__all__ = [
    "AccuracyMatrices",
    "AllTaskProbes",
    "ClassSizeLaw",
    "CorruptionStream",
    "ImageFiles",
    "LaterPeriodProbes",
    "OpenWorld",
    "Order",
    "OrderedImages",
    "PeriodRange",
    "Periods",
    "Prefetched",
    "QueryPools",
    "QueryStream",
    "Shards",
    "ShiftSequence",
    "Sources",
    "TaskStream",
    "corruption_path",
    "corruption_stream",
    "held_out_sets",
    "image_files",
    "open_world",
    "ordered_images",
    "ordered_queries",
    "ordered_world",
    "period_sequence",
    "periods",
    "pools",
    "prefetch",
    "published_world",
    "queries",
    "read_matrices",
    "read_order",
    "sequence",
    "shards",
    "task_stream",
    "write_matrices",
    "write_shards",
]
