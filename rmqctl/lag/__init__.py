"""How late groups are: looks at a store, and what commands make of them."""
