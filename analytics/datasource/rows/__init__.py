"""The tasks' part: rows of ranges and of whole stores as Arrow batches."""
