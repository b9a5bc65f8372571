"""Messages out of a store into files, and back into a store."""
