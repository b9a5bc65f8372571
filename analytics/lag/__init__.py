"""The lag of groups: one snapshot, its health, trend and totals."""
