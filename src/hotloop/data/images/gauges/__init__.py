"""`data=gauges`: drawn pictures of analogue dial gauges; the target is the reading."""

from hotloop.data.images.gauges.source import GaugeReader, Gauges

__all__ = ["GaugeReader", "Gauges"]
