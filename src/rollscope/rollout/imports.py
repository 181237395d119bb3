"""Finding an object by its import path, as configurations name workflows and functions."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["import_object"]


def import_object(path: str) -> Any:  # noqa: ANN401  (whatever the path names)
    """Give what a path such as `"package.module.name"` or `"package.module:name"` names.

    Raises:
        ImportError: There is no such module, it cannot be loaded, or it has no such name.
    """
    module_name, _, name = path.replace(":", ".", 1).rpartition(".")
    if not all(part.isidentifier() for part in (*module_name.split("."), name)):
        raise ImportError(f'{path!r} is not an import path; write it as "package.module.name"')
    try:
        return getattr(importlib.import_module(module_name), name)
    except ImportError:
        raise
    except AttributeError as error:
        raise ImportError(f"{error}") from error
    except Exception as error:  # a module that is imported runs code of the host, which may fail
        raise ImportError(f"{module_name} cannot be loaded: {error!r}") from error
