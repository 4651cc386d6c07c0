"""All faults."""

from __future__ import annotations

from .page import PAGE
from .service import SERVICE
from .sound import SOUND

MUTANTS = (*SOUND, *SERVICE, *PAGE)
