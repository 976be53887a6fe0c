"""What requests may hold. Everything is strict: no unknown field, no text for a number; null is the default."""
