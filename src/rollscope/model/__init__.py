"""The model: what a run consists of. Pure and typed; nothing in here does I/O."""
