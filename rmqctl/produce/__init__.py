"""From bytes on standard input to messages in a store: reading, parsing, batching, pacing."""
