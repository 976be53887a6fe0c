"""Makes model folders: ``convert`` from a Hugging Face folder or a GGUF file, ``pull`` a known model by name.

Needs the extra ``export`` (``pip install 'oga[export]'``) when one of them is called, not to be imported.
"""

from oga.export.conversion import ConvertReport, convert
from oga.export.errors import ConversionError, ExportError, MissingExtraError, PullError
from oga.export.pulling import fetch_source, pull, pullable_names, pulled_folder

__all__ = [
    "ConversionError",
    "ConvertReport",
    "ExportError",
    "MissingExtraError",
    "PullError",
    "convert",
    "fetch_source",
    "pull",
    "pullable_names",
    "pulled_folder",
]
