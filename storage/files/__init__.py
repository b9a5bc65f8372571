"""The seam to the operating system, and files as arrays of bytes."""
