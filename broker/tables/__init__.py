"""Topics and groups: settings that all processes of a store share."""
