"""Episodes of verifiers as sessions, seen from their start; what it writes itself is imported.

    import rollscope
    from rollscope.integrations import verifiers

    rollscope.init(run="gsm8k")
    verifiers.install()        # every environment of this process, or: verifiers.watch(env)

verifiers (0.4 or newer) is imported by `install`, not by this package.
"""

from rollscope.integrations.verifiers.watching import install, uninstall, watch

__all__ = ["install", "uninstall", "watch"]
