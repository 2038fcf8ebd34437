"""The option of `make golden`: golden files are written instead of compared."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-golden", action="store_true", help="write tests/contract/golden again")
