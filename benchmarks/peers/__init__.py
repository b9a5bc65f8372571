"""Other stores, made to keep what ours keeps."""
