"""Read a conda recipe as rattler-build does, and say what would be built; nothing is fetched.

Run with:  python packaging/render_recipe.py packaging/conda/recipe.yaml
"""

from __future__ import annotations

import sys
from pathlib import Path

from rattler_build import Stage0Recipe, VariantConfig


def main() -> None:
    """Render the recipe that is named."""
    recipe = Stage0Recipe.from_file(Path(sys.argv[1]))
    for variant in recipe.render(VariantConfig()):
        package, needs = variant.recipe.package, variant.recipe.requirements.run
        print(f"{package.name} {package.version} needs", ", ".join(map(str, needs)))


if __name__ == "__main__":
    main()
