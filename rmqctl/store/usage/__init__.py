"""What fills the disk, what is deleted next, and deleting it."""
