"""Tables in and out: cells, columns, formats, files."""
