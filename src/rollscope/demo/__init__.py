"""A real, small, asynchronous training on the CPU, to show Rollscope on."""
