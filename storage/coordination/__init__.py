"""Many processes on one folder: the write lock, the shared state, wakeups, who is in."""
