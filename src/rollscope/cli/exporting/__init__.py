"""The formats of `rollscope export`, one module each."""
