"""From a place, a time or a key to messages; where a store ends that nobody keeps a page for."""
