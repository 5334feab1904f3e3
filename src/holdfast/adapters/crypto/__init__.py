"""Keys and signatures, by the `cryptography` package; installed with `holdfast[audit]`."""
