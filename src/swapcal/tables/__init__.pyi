"""Tables in: files, frames and lists of records, read in batches; and columns that become codes, bands and rows."""

from swapcal.tables.batch import Batch as Batch
from swapcal.tables.batch import Coded as Coded
from swapcal.tables.records import Records as Records
from swapcal.tables.records import read as read
