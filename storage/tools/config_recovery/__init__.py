"""Recovery of damaged files of settings and progress; see recover-offsets, recover-config."""
