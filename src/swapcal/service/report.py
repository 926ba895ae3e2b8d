"""A stream's audit as a page: one file, no scripts, fit to be kept or printed."""

from html import escape

from swapcal.service.reading import AuditReading, Errors, GroupReading
from swapcal.service.schemas import StreamStatus

__all__ = ["report_page"]


def report_page(reading: AuditReading, status: StreamStatus) -> str:
    """The page."""
    return ""
