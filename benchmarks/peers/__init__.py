"""Other stores, made to keep the same data as ours."""
