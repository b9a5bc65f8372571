"""Tools on whole stores: fsck, repair, rebuild, snapshot, carve, and recovery of settings."""
