"""What says that a file was made by a machine: written into pictures, found in any file.

Pictures carry an XMP packet with IPTC's digital source type, sound files tags with the same. Tags
prove nothing: anyone can write or remove them, so what is found is what a file declares.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from cantata.contract.data.errors import InvalidMedia
from cantata.media.manifests import Manifest, read_manifest

if TYPE_CHECKING:
    from PIL.PngImagePlugin import PngInfo

SOURCE_TYPES = "http://cv.iptc.org/newscodes/digitalsourcetype/"
MADE_BY_A_MODEL = "trainedAlgorithmicMedia"
_SYNTHETIC = frozenset(
    (
        "algorithmicMedia",
        "compositeSynthetic",
        "compositeWithTrainedAlgorithmicMedia",
        MADE_BY_A_MODEL,
    )
)
"""IPTC's types of what is made by software without a camera or microphone, or partly so."""
_XMP = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
 xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"
 xmp:CreatorTool="{software}" Iptc4xmpExt:DigitalSourceType="{source}"/>
</rdf:RDF></x:xmpmeta><?xpacket end="r"?>"""
_PNG_XMP = "XML:com.adobe.xmp"
_SOURCE = re.compile(r"digitalsourcetype/(\w{1,60})", re.IGNORECASE)
_TOOL = re.compile(r"""(?:CreatorTool|software|encoder|ISFT)(?:>|=["'])([^<"']{1,200})""")
_WORDS = re.compile(r"\b(?:AI|synthetic|artificial|machine)[- ](?:generated|speech|voice)", re.I)
_C2PA = "c2pa"
_EDGE = 1 << 20
"""Bytes at each end of a file in which a C2PA manifest or a source type is looked for."""


@dataclass(frozen=True, slots=True)
class Provenance:
    kind: Literal["image", "audio"]
    synthetic: bool | None
    """None: it does not say."""
    digital_source_type: str | None
    """IPTC's, without its address."""
    software: str | None
    c2pa: bool
    """It seems to have a C2PA manifest."""
    manifest: Manifest | None
    """None: it has none, or c2pa-python is not here to read it."""


def write_xmp() -> bytes:
    """The XMP packet of a picture that this program has made."""
    return _XMP.format(
        software=_describe_software(), source=SOURCE_TYPES + MADE_BY_A_MODEL
    ).encode()


def make_sound_tags(model: str | None) -> tuple[tuple[str, str], ...]:
    """Names and values of the tags of speech that a model has made here. `model`: its name; None:
    it is not told."""
    return (
        ("comment", "AI-generated speech"),
        ("software", _describe_software() if model is None else f"{_describe_software()}, {model}"),
        ("digital_source_type", SOURCE_TYPES + MADE_BY_A_MODEL),
    )


def _describe_software() -> str:
    return f"Cantata {version('cantata')}"


def make_png_info() -> PngInfo:
    """The same for PNG."""
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_itxt(_PNG_XMP, write_xmp().decode())
    return info


def find_provenance(data: bytes) -> Provenance:
    """What the tags of a picture or a sound file say. Blocks. Raises InvalidMedia: it is
    neither."""
    from PIL import Image, UnidentifiedImageError

    kind: Literal["image", "audio"]
    try:
        with Image.open(io.BytesIO(data)) as image:
            kind, tags = "image", [_as_text(value) for value in image.info.values()]
    except UnidentifiedImageError:
        kind, tags = "audio", _read_sound_tags(data)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InvalidMedia(f"the picture cannot be read: {error}", "file") from error
    written, edges = "\n".join(tags), (data[:_EDGE] + data[-_EDGE:]).decode("latin-1")
    # At the edges stands what readers of tags leave out: XMP in WAV and MP4, iXML, manifests.
    source, tool = _SOURCE.search(written) or _SOURCE.search(edges), _TOOL.search(written)
    hinted, manifest = _C2PA in edges, read_manifest(data)
    if manifest is not None and manifest.state == "unreadable" and not hinted:
        manifest = None  # another kind of damage
    said = source is not None or _WORDS.search(written) is not None
    return Provenance(
        kind=kind,
        synthetic=(source is None or source[1] in _SYNTHETIC) if said else None,
        digital_source_type=source[1] if source else None,
        software=tool[1] if tool else None,
        c2pa=hinted or manifest is not None,
        manifest=manifest,
    )


def _read_sound_tags(data: bytes) -> list[str]:
    import av

    try:
        with av.open(io.BytesIO(data)) as file:
            streams: Iterable[dict[str, str]] = (stream.metadata for stream in file.streams)
            found = [file.metadata, *streams]
    except (av.FFmpegError, ValueError) as error:
        raise InvalidMedia("the file is neither a picture nor a sound file", "file") from error
    return [f'{name}="{value}"' for tags in found for name, value in tags.items()]


def _as_text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
