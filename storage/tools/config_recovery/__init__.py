"""What damaged files of settings and progress still tell; see recover-offsets, recover-config."""
