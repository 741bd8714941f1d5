"""The packages of the wheel: each top-level folder under the name that it is imported by."""

from setuptools import find_packages, setup

FOLDERS = {
    "polynya": "layers/bridge/polynya",
    "polynya_functions": "functions",
    "polynya_local": "local",
    "polynya_pipeline": "pipeline",
}
# Folders of functions have no __init__.py: in Lambda they are not packages.
FUNCTIONS = ["commits", "object_lambda", "rest_catalog"]

setup(
    package_dir=FOLDERS,
    packages=[
        *(f"polynya_functions.{name}" for name in FUNCTIONS),
        *(
            ".".join(filter(None, (package, inner)))
            for package, folder in FOLDERS.items()
            if package != "polynya_functions"
            for inner in ("", *find_packages(folder))
        ),
    ],
)
