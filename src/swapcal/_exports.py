"""The public names of a package, loaded when somebody asks for them.

Their only list is the package's `__init__.pyi`, which type checkers and editors read as it is: one line
`from module import name as name` for each. Nothing is imported here, so that `import swapcal` costs next to nothing.
"""

import importlib
import sys


class Exports:
    """What `__init__.pyi` beside `file` lists: `home[name]` is the module that has the name.

    Parameters
    ----------
    package : str
        Name of the package.
    file : str
        Its `__init__.py`.

    Examples
    --------
    >>> import swapcal
    >>> Exports("swapcal", swapcal.__file__).home["Forecaster"]
    'swapcal.forecaster'
    """

    def __init__(self, package: str, file: str) -> None:
        self.package, self.home = package, dict[str, str]()
        with open(file.removesuffix("c") + "i", encoding="utf-8") as stub:
            for line in stub:
                if line.startswith("from "):
                    _, module, _, name, _, _ = line.split()
                    self.home[name] = module

    def load(self, name: str) -> object:
        """The thing itself, which the package then has; for its `__getattr__`."""
        package = sys.modules[self.package]
        if name not in self.home:
            raise AttributeError(f"module {self.package!r} has no attribute {name!r}", name=name, obj=package)
        module = self.home[name]
        # A room of the package is named by the package itself.
        parts = (f"{module}.{name}",) if module == self.package else (module,)
        target = importlib.import_module(*parts)
        value = target if module == self.package else getattr(target, name)
        setattr(package, name, value)
        return value
