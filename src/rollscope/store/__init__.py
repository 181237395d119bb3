"""The store: reading runs back, while they are being written and afterwards."""
