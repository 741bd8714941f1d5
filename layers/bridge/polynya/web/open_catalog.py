"""The catalog that the functions behind API Gateway answer from."""

from ..catalog import Catalog
from ..config import Config
from ..database import open_database
from ..files.virtual_files import VirtualFiles
from ..storage.configured import file_cache
from ..storage.objects.reader import ObjectReader


def catalog_of(config: Config, reader: ObjectReader) -> Catalog:
    """The lake of the settings; the database is not connected yet.

    Args:
        reader: of the lake's own files.

    Raises:
        Misconfigured: a setting is not usable.
    """
    database = open_database(config)
    virtual_files = VirtualFiles(config, database, file_cache(config.storage), reader)
    return Catalog(config, database, virtual_files)
