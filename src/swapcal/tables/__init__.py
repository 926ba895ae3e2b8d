"""Tables in: files, frames and lists of records, read in batches; and columns that become codes, bands and rows."""
