"""How: one module, or one small room, for each technology behind a port."""
