"""Pictures of replays: a page for browsers, an image, and text."""

from allotment.trace.pictures.drawing import Drawing, Holder, draw
from allotment.trace.pictures.image import write_image
from allotment.trace.pictures.page import write_page
from allotment.trace.pictures.text import report_figures, report_text

__all__ = ["Drawing", "Holder", "draw", "report_figures", "report_text", "write_image", "write_page"]
