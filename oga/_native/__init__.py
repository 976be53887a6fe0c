"""The boundary to liboga: loading it, its result objects, its handles. Nothing here is public."""
