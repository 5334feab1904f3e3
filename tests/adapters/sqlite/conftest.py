"""What tests of the SQLite store share."""

from tests.process.conftest import fast_folder as fast_folder
