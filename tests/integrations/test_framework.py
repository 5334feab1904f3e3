import importlib

import pytest

from holdfast.domain.errors import ConfigError
from holdfast.integrations.framework import framework


def test_a_version_in_the_range_is_let_through():
    with framework("pytest", "1", "99", extra="testing"):
        import pytest as imported

    assert imported is pytest


@pytest.mark.parametrize(("at_least", "below"), [("1", "2"), ("98.1", "99")])
def test_a_version_outside_of_the_range_is_told_with_the_range(at_least, below):
    with pytest.raises(ConfigError) as caught, framework("pytest", at_least, below, extra="testing"):
        pass
    assert f"pytest at least {at_least} and below {below} is needed" in str(caught.value)
    assert "pip install 'holdfast[testing]'" in str(caught.value)


def test_what_is_not_installed_is_told_with_what_installs_it():
    with pytest.raises(ConfigError) as caught, framework("no-such-package", "1", "2", extra="testing"):
        pass
    assert "no-such-package at least 1 and below 2 is not installed" in str(caught.value)


def test_a_module_that_the_framework_no_longer_has_is_told():
    with pytest.raises(ConfigError) as caught, framework("pytest", "1", "99", extra="testing"):
        importlib.import_module("pytest.no_such_name")
    assert "no_such_name" in str(caught.value)
